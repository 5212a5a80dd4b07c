-- Where a script that only reads goes on when its orchestrator died: one row a running script.
create table script_checkpoints (
    -- Of the `tool_script` call; it is the same one when the turn is taken over.
    call_id text primary key,
    conversation_id uuid not null references conversations on delete cascade,
    -- A checkpoint belongs to exactly this text.
    script_sha256 bytea not null,
    -- The request at which the program stands, its paused state, and the answer it was given.
    seq bigint not null,
    state bytea not null,
    answer bytea not null,
    -- JSON text: what the orchestrator had counted, and the calls on the card.
    progress text not null,
    updated_at timestamptz not null default now()
);

create index script_checkpoints_by_conversation on script_checkpoints (conversation_id);
create index script_checkpoints_by_age on script_checkpoints (updated_at);
