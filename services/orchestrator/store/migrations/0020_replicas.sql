-- Where the orchestrators of one database are reached by each other, so that whoever is asked about a
-- turn that another one runs can ask on. A row whose advisory lock is free belongs to a dead one.
create table orchestrators (
    instance integer primary key,
    address text not null,
    since timestamptz not null default now()
);
