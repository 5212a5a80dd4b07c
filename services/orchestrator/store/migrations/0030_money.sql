-- Money: what was spent on which day, what is promised to work that runs, and what the person said
-- about going on past a budget.

-- The person's time zone and calendar day (TRN-003). Each connection of the services carries the zone.
create function person_zone() returns text
    language sql stable
    return coalesce(nullif(current_setting('crew.timezone', true), ''), 'UTC');

create function person_day() returns date
    language sql stable
    return (now() at time zone person_zone())::date;

-- A cost worked out of the lengths of texts, since no tokens were reported (FLD-018).
alter table messages add column cost_estimated boolean not null default false;
alter table side_calls add column cost_estimated boolean not null default false;

-- 'tool': what a tool's host says it paid itself. 'turn': calls of turns whose conversation was deleted.
alter table side_calls drop constraint side_calls_purpose_check;
alter table side_calls add constraint side_calls_purpose_check check (purpose in (
    'tool_summary', 'image', 'pdf', 'script', 'transcribe', 'consolidate', 'title', 'recap', 'wiki',
    'compact', 'route', 'brief', 'review', 'verify', 'relevance', 'abandoned', 'tool', 'turn'));

-- The ledger by day, so that a budget is looked up in a few rows, and nothing that is deleted later
-- gives money back. Kept by triggers: no entry of the ledger is made without it.
create table spending (
    day date not null,
    agent_id text not null,
    -- "<agent>/<schedule>" of the job that spent it; '' for all other work.
    schedule text not null default '',
    calls bigint not null default 0,
    unknown_cost_calls bigint not null default 0,
    cost_usd numeric(20, 8) not null default 0,
    primary key (day, agent_id, schedule)
);

-- Before this migration the person's zone was not known here.
insert into spending (day, agent_id, calls, unknown_cost_calls, cost_usd)
select (at at time zone 'UTC')::date, agent_id, count(*), count(*) filter (where cost_usd is null),
    coalesce(sum(cost_usd), 0)
from (
    select m.created_at as at, c.agent_id, m.cost_usd
    from messages m join conversations c on c.id = m.conversation_id
    where m.role = 'assistant' and m.provider is not null
    union all
    select at, agent_id, cost_usd from side_calls
) calls
group by 1, 2;

create function spend(agent text, run uuid, cost numeric) returns void
language sql as $$
    insert into spending as s (day, agent_id, schedule, calls, unknown_cost_calls, cost_usd)
    values (
        person_day(), agent,
        coalesce((select substr(r.source, 5) from runs r where r.id = run and r.source like 'job:%'), ''),
        1, case when cost is null then 1 else 0 end, coalesce(cost, 0))
    on conflict (day, agent_id, schedule) do update
    set calls = s.calls + 1, unknown_cost_calls = s.unknown_cost_calls + excluded.unknown_cost_calls,
        cost_usd = s.cost_usd + excluded.cost_usd
$$;

create function spend_of_message() returns trigger
language plpgsql as $$
begin
    perform spend((select c.agent_id from conversations c where c.id = new.conversation_id), new.run_id,
        new.cost_usd);
    return null;
end
$$;

create function spend_of_side_call() returns trigger
language plpgsql as $$
begin
    perform spend(new.agent_id, new.run_id, new.cost_usd);
    return null;
end
$$;

-- Of calls whose price nobody knows, for the day's limit of a conversation (FLD-018).
create index side_calls_unpriced on side_calls (conversation_id, at) where cost_usd is null;

create trigger spent after insert on messages for each row
    when (new.role = 'assistant' and new.provider is not null) execute function spend_of_message();
create trigger spent after insert on side_calls for each row
    when (new.purpose <> 'turn') execute function spend_of_side_call();

-- What is promised to model calls that run now (FLD-017). That of a turn is named by its conversation and
-- goes with its claim at the latest; one outside a turn ends by itself if its process dies.
create table reservations (
    id uuid primary key,
    conversation_id uuid references turns on delete cascade,
    agent_id text not null,
    schedule text not null,
    amount_usd numeric(16, 8) not null check (amount_usd >= 0),
    expires_at timestamptz,
    check (conversation_id is not null or expires_at is not null)
);

create index reservations_by_conversation on reservations (conversation_id);

-- The part of a conversation's cap that a delegated child was given and has not accounted for yet
-- (FLD-017, TRN-272). No amount: the parent has no cap.
create table budget_shares (
    child_id uuid primary key references conversations on delete cascade,
    parent_id uuid not null references conversations on delete cascade,
    amount_usd numeric(16, 8) check (amount_usd > 0),
    created_at timestamptz not null default now()
);

create index budget_shares_by_parent on budget_shares (parent_id);

-- That a budget is nearly spent is told once in its period (FLD-016).
create table budget_notices (
    scope text not null check (scope in ('crew', 'agent', 'schedule')),
    scope_id text not null,
    period text not null check (period in ('day', 'month')),
    starts_on date not null,
    at timestamptz not null default now(),
    primary key (scope, scope_id, period, starts_on)
);

-- Whether attended turns go on past a spent budget for the rest of a day (FLD-016).
create table budget_answers (
    day date not null,
    scope text not null check (scope in ('crew', 'agent', 'schedule')),
    scope_id text not null,
    period text not null check (period in ('day', 'month')),
    go_on boolean not null,
    decided_by text not null,
    at timestamptz not null default now(),
    primary key (day, scope, scope_id, period)
);

alter table approvals drop constraint approvals_kind_check;
alter table approvals add constraint approvals_kind_check check (kind in ('tool', 'question', 'budget'));
