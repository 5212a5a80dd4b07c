-- What ends: turns nobody attends, old records, months of the audit trail. And what a call that may
-- have taken effect leaves behind.

-- What became of the call that a tool message answers, and the digest of its final arguments (FLD-084).
alter table messages
    add column outcome text check (outcome in ('done', 'not_started', 'unknown')),
    add column arguments_sha256 bytea;

create index messages_unknown on messages (conversation_id) where outcome = 'unknown';

-- What may still be worked on the run while nobody attends it; null: somebody does (FLD-008). Of a
-- running turn the claim's `ends_at` counts instead.
alter table runs add column seconds_left double precision check (seconds_left >= 0);
alter table turns add column ends_at timestamptz;

-- The removal of old records looks up by age, and what refers to a run is found without reading whole
-- tables (FLD-052).
create index runs_ended on runs (finished_at) where finished_at is not null;
create index messages_by_run on messages (run_id) where run_id is not null;
create index approvals_by_run on approvals (run_id);
create index side_calls_by_run on side_calls (run_id) where run_id is not null;
create index message_requests_by_run on message_requests (run_id) where run_id is not null;

-- Written to and taken back, to learn whether Postgres takes writes again (FLD-051). Always empty.
create table write_probe (filling bytea not null);
alter table write_probe alter column filling set storage external;

-- The audit trail by month (FLD-052). The owner of the schema calls this at each start: the months that
-- hold rows, this one and the next three get a partition, months older than `keep` are dropped.
create function audit.keep_months(keep integer) returns void
language plpgsql
set timezone = 'UTC'
set search_path = pg_catalog
as $$
declare
    tab text;
    part text;
    rest text;
    month timestamptz;
    this_month constant timestamptz := date_trunc('month', now());
begin
    if keep is null or keep < 1 then
        raise exception 'at least one month is kept';
    end if;
    foreach tab in array array['calls', 'access'] loop
        rest := tab || '_rest';
        -- Nothing may arrive in the rest between the move of a month and its partition.
        execute format('lock table audit.%I in access exclusive mode', rest);
        for month in execute format(
            $q$
            select date_trunc('month', at) from audit.%I
            union select %L::timestamptz + make_interval(months => n) from generate_series(0, 3) n
            $q$, rest, this_month)
        loop
            part := tab || '_' || to_char(month, 'YYYY_MM');
            if to_regclass(format('audit.%I', part)) is null then
                execute format('create table audit.%I (like audit.%I including defaults including constraints)', part, tab);
                execute format(
                    'with moved as (delete from audit.%I where at >= %L and at < %L returning *)
                     insert into audit.%I select * from moved',
                    rest, month, month + interval '1 month', part);
                execute format('alter table audit.%I attach partition audit.%I for values from (%L) to (%L)',
                    tab, part, month, month + interval '1 month');
            end if;
        end loop;
        for part in
            select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
            where i.inhparent = to_regclass(format('audit.%I', tab))
                and c.relname ~ ('^' || tab || '_\d{4}_\d{2}$')
                and to_date(right(c.relname, 7), 'YYYY_MM') < this_month - make_interval(months => keep)
        loop
            execute format('drop table audit.%I', part);
        end loop;
    end loop;
end
$$;

revoke execute on function audit.keep_months(integer) from public;
