-- What can be told of a call afterwards: how large it was, how it failed, what its command was
-- (PIP-110, PIP-111, PIP-154, PIP-156).

alter table audit.calls
    add column effect text check (effect in ('read', 'replace', 'change')),
    add column outcome text check (outcome in ('done', 'not_started', 'unknown')),
    -- Why it failed; '' when it did not.
    add column fault text not null default '',
    -- The parameters at fault, or the tools nearest to an unknown name.
    add column about text[] not null default '{}',
    add column absent boolean not null default false,
    -- What the call is about, as far as tools share the parameter: a path, an address.
    add column target text not null default '',
    -- The whole command of a shell's call, once: where it was let through or withheld.
    add column command text,
    add column exit_code integer,
    add column bytes_in bigint not null default 0,
    add column bytes_out bigint,
    add column trace_id text not null default '';

grant insert (effect, outcome, fault, about, absent, target, command, exit_code, bytes_in, bytes_out, trace_id)
    on audit.calls to crew_app;

-- The trail is read newest first, whole or by tool or conversation.
create index calls_by_tool on audit.calls (tool, at desc, id desc);
create index calls_by_conversation on audit.calls (conversation_id, at desc, id desc);
