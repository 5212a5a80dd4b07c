-- Conversations, their log, the turns on them, and the append-only record of what was let through.

create table conversations (
    id uuid primary key,
    agent_id text not null,
    channel text not null,
    title text not null default '',
    -- A title a person chose is never replaced by one a model made (TRN-016).
    title_by_person boolean not null default false,
    autonomous boolean not null,
    skills text[] not null default '{}',
    cost_cap_usd numeric(16, 8) not null check (cost_cap_usd >= 0),
    spent_usd numeric(16, 8) not null default 0,
    unknown_cost_calls integer not null default 0,
    approval_ttl_seconds integer,
    forked_from uuid references conversations on delete set null,
    parent_conversation_id uuid references conversations on delete set null,
    parent_call_id text,
    -- Number of the last message.
    last_seq integer not null default 0,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
);

create index conversations_by_update on conversations (updated_at desc) where parent_conversation_id is null;

-- The one conversation of an agent on a channel on a person's calendar day (TRN-002).
create table daily_conversations (
    agent_id text not null,
    channel text not null,
    day date not null,
    conversation_id uuid not null references conversations on delete cascade,
    primary key (agent_id, channel, day)
);

create table runs (
    id uuid primary key,
    -- Order of creation, which start times in whole seconds do not give (TRN-291).
    n bigint generated always as identity unique,
    -- No foreign key: the record of a run outlives its conversation (TRN-018).
    conversation_id uuid not null,
    agent_id text not null,
    source text not null,
    status text not null check (status in ('running', 'awaiting_approval', 'done', 'halted', 'error')),
    summary text not null default '',
    -- The last message before it began.
    after_seq integer not null,
    model_calls integer not null default 0,
    cost_usd numeric(16, 8) not null default 0,
    unknown_cost_calls integer not null default 0,
    -- How often the turn was taken up after its process died, this run included.
    recoveries integer not null default 0,
    recovered_from uuid,
    started_at timestamptz not null default date_trunc('second', now()),
    finished_at timestamptz
);

create index runs_by_conversation on runs (conversation_id, n);
create index runs_by_agent on runs (agent_id, n);
create index runs_unfinished on runs (n) where status in ('running', 'awaiting_approval');

create table run_steps (
    run_id uuid not null references runs on delete cascade,
    n integer not null,
    kind text not null,
    -- A crew.v1.RunStep as JSON text.
    body json not null,
    primary key (run_id, n)
);

create table messages (
    id bigint generated always as identity primary key,
    conversation_id uuid not null references conversations on delete cascade,
    seq integer not null,
    role text not null check (role in ('user', 'assistant', 'tool')),
    author text not null check (author in ('person', 'agent', 'tool', 'system')),
    content text not null,
    -- Null or a JSON array of calls in the order written.
    tool_calls json,
    tool_call_id text,
    name text,
    provider text,
    model text,
    cost_usd numeric(16, 8),
    prompt_tokens bigint,
    completion_tokens bigint,
    cached_tokens bigint,
    reasoning_tokens bigint,
    is_error boolean not null default false,
    details json,
    context json,
    -- What the provider that wrote the message needs back (FLD-001).
    opaque json,
    run_id uuid references runs on delete set null,
    created_at timestamptz not null default now(),
    unique (conversation_id, seq)
);

-- Every call has one result (TRN-138).
create unique index messages_one_result on messages (conversation_id, tool_call_id) where role = 'tool';

create table queued_messages (
    id bigint generated always as identity primary key,
    conversation_id uuid not null references conversations on delete cascade,
    kind text not null check (kind in ('follow_up', 'steer')),
    text text not null,
    source text not null,
    created_at timestamptz not null default now()
);

create index queued_by_conversation on queued_messages (conversation_id, id);

-- What a sender called its message, so that the same twice is one (GTW-078 to 083).
create table message_requests (
    conversation_id uuid not null references conversations on delete cascade,
    request_id text not null,
    text_sha256 bytea not null,
    run_id uuid references runs on delete set null,
    -- Of the waiting message; a row that was moved into a turn is named by `run_id` instead.
    item_id bigint,
    primary key (conversation_id, request_id)
);

-- A conversation that a process is working on now. The row is the claim: (run_id, epoch) names its
-- holder, and every write of a turn asks for it.
create table turns (
    conversation_id uuid primary key references conversations on delete cascade,
    run_id uuid not null references runs on delete cascade,
    -- The advisory lock that the owner holds for as long as it lives.
    instance integer not null,
    epoch bigint not null,
    lease_until timestamptz not null,
    stop_requested boolean not null default false
);

create sequence turn_epochs;
create sequence instance_numbers as integer cycle;

create table approvals (
    id uuid primary key,
    conversation_id uuid not null references conversations on delete cascade,
    agent_id text not null,
    run_id uuid not null references runs on delete cascade,
    kind text not null check (kind in ('tool', 'question')),
    tool text not null,
    tool_call_id text not null,
    -- The JSON text that was approved, byte for byte.
    arguments text not null,
    arguments_sha256 bytea not null,
    reason text not null default '',
    summary text not null default '',
    preview text not null default '',
    options text[] not null default '{}',
    default_answer text,
    answer text,
    status text not null default 'pending'
        check (status in ('pending', 'approved', 'denied', 'expired', 'answered')),
    may_always boolean not null default false,
    token text not null default '',
    target_state text not null default '',
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    decided_at timestamptz,
    decided_by text,
    -- The approved call began: after a restart it is not known to have not run.
    started_at timestamptz
);

create unique index approvals_one_waiting on approvals (conversation_id) where status = 'pending';
create index approvals_by_call on approvals (conversation_id, tool_call_id);
create index approvals_waiting on approvals (expires_at) where status = 'pending';
create index approvals_decided on approvals (decided_at desc) where status <> 'pending';

-- What runs unasked in a conversation: a tool, or a narrower "tool:scope" (FLD-021).
create table grants (
    conversation_id uuid not null references conversations on delete cascade,
    allows text not null,
    uses integer not null default 0,
    created_at timestamptz not null default now(),
    primary key (conversation_id, allows)
);

-- The ledger of model calls outside the loop (TRN-264). Never the prompt.
create table side_calls (
    id bigint generated always as identity primary key,
    at timestamptz not null default now(),
    purpose text not null check (purpose in (
        'tool_summary', 'image', 'pdf', 'script', 'transcribe', 'consolidate', 'title', 'recap', 'wiki',
        'compact', 'route', 'brief', 'review', 'verify', 'relevance', 'abandoned')),
    agent_id text not null,
    conversation_id uuid references conversations on delete set null,
    run_id uuid references runs on delete set null,
    provider text not null,
    model text not null,
    prompt_tokens bigint,
    completion_tokens bigint,
    cached_tokens bigint,
    reasoning_tokens bigint,
    cost_usd numeric(16, 8)
);

create index side_calls_by_time on side_calls (at);
create index messages_paid_by_time on messages (created_at) where provider is not null;

-- The audit trail (PIP-112): the services may add to it and read it, nothing else.
create schema if not exists audit;

create table audit.calls (
    id bigint generated always as identity,
    at timestamptz not null default now(),
    event text not null check (event in ('allowed', 'ended', 'withheld')),
    agent_id text not null,
    conversation_id uuid not null,
    run_id uuid not null,
    call_id text not null,
    tool text not null,
    arguments_sha256 bytea not null,
    arguments_short text not null,
    allowed_by text not null,
    rule text not null default '',
    decided_by text,
    ok boolean,
    ms bigint,
    primary key (at, id)
) partition by range (at);

create table audit.calls_rest partition of audit.calls default;

create index calls_by_call on audit.calls (call_id);

grant usage on schema audit to crew_app;
grant select on audit.calls to crew_app;
grant insert (event, agent_id, conversation_id, run_id, call_id, tool, arguments_sha256, arguments_short,
    allowed_by, rule, decided_by, ok, ms) on audit.calls to crew_app;
