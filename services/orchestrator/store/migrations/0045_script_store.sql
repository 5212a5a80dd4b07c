-- What scripts keep between their runs, and how often agents of an id were removed.

-- A script that began before a removal keeps nothing after it, even under a new agent of that id
-- (SCR-335, SCR-338).
create table agent_removals (
    agent_id text primary key,
    removals integer not null default 0
);

create table script_values (
    agent_id text not null,
    namespace text not null,
    -- Of a store that goes with its conversation (SCR-316).
    conversation_id uuid references conversations on delete cascade,
    -- UTF-8: a script may use any key, also one with a character that text does not hold.
    key bytea not null,
    -- The exact JSON text (SCR-321).
    value text not null,
    key_chars integer not null,
    value_chars integer not null,
    updated_at timestamptz not null default now(),
    primary key (agent_id, namespace, key)
);

create index script_values_by_conversation on script_values (conversation_id)
    where conversation_id is not null;
