-- What the owner is told without having asked (PIP-113, PIP-155, FLD-024). A row is its own outbox: it
-- waits for a surface that shows it to a person, and goes on to the next channel when none does in time.

create table notifications (
    id uuid primary key,
    -- Order of creation.
    n bigint generated always as identity unique,
    kind text not null check (kind in ('trouble', 'recovered', 'approval')),
    cause text not null default '',
    -- A tool or a host.
    subject text not null,
    -- In the crew's language, as it was when it was told.
    text text not null,
    approval_id uuid references approvals on delete cascade,
    conversation_id uuid references conversations on delete cascade,
    agent_id text,
    created_at timestamptz not null default now(),
    read_at timestamptz,
    -- What it tells of is over: the tool works again, the request is closed.
    over_at timestamptz,
    -- The channel that it waits in.
    channel text not null default 'web',
    -- Until then a surface has to confirm it.
    confirm_by timestamptz not null default now() + interval '60 seconds',
    delivered_at timestamptz,
    delivered_by text,
    -- No channel was left.
    undelivered_at timestamptz,
    delivery text not null generated always as (
        case when delivered_at is not null then 'delivered'
            when undelivered_at is not null then 'not_delivered' else 'waiting' end) stored
);

-- Each cause notifies once until it is over, however many orchestrators see it.
create unique index notifications_open_trouble on notifications (cause, subject)
    where kind = 'trouble' and over_at is null;
create unique index notifications_by_approval on notifications (approval_id) where approval_id is not null;
create index notifications_by_conversation on notifications (conversation_id) where conversation_id is not null;
create index notifications_unread on notifications (n) where read_at is null;
create index notifications_waiting on notifications (confirm_by)
    where delivered_at is null and undelivered_at is null;
create index notifications_by_age on notifications (created_at);

-- Watchers of every orchestrator are told: the row that changed, or nothing when rows were read.
create function notification_changed() returns trigger
language plpgsql
set search_path = pg_catalog
as $$
begin
    perform pg_notify('crew_notifications', new.id::text);
    return null;
end
$$;

create trigger notification_told after insert or update of over_at, delivered_at, undelivered_at
    on notifications for each row execute function notification_changed();

create function notifications_read() returns trigger
language plpgsql
set search_path = pg_catalog
as $$
begin
    perform pg_notify('crew_notifications', '');
    return null;
end
$$;

create trigger notifications_read after update of read_at
    on notifications for each statement execute function notifications_read();

-- The last ten calls of a tool are looked up by these.
create index calls_failed on audit.calls (at) where event = 'ended' and fault <> '';
