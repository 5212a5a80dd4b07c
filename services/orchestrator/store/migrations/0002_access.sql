-- Who may reach the crew: the owner's credential, sessions, API tokens, and the record of access.

-- One row at most.
create table owner_credential (
    only_row boolean primary key default true check (only_row),
    -- Argon2id in its own notation.
    password_hash text not null,
    changed_at timestamptz not null default now()
);

-- Secrets of sessions and tokens are random and long: their SHA-256 is enough, and can be looked up.
create table sessions (
    id uuid primary key,
    secret_sha256 bytea not null unique check (length(secret_sha256) = 32),
    address text not null,
    created_at timestamptz not null default now(),
    last_used_at timestamptz not null default now(),
    expires_at timestamptz not null
);

create table api_tokens (
    id uuid primary key,
    name text not null unique,
    secret_sha256 bytea not null unique check (length(secret_sha256) = 32),
    scopes text[] not null,
    created_at timestamptz not null default now(),
    last_used_at timestamptz,
    expires_at timestamptz
);

-- Tokens of the first run (GTW-025); all are void as soon as there is a credential.
create table setup_tokens (
    secret_sha256 bytea primary key check (length(secret_sha256) = 32),
    expires_at timestamptz not null
);

-- Failed logins by address (GTW-029).
create table login_failures (
    address text primary key,
    -- The failures of the last minute, newest first.
    failed_at timestamptz[] not null,
    blocked_until timestamptz
);

-- The access audit (GTW-036): the services may add to it and read it, nothing else.
create table audit.access (
    id bigint generated always as identity,
    at timestamptz not null default now(),
    event text not null check (event in (
        'login', 'login_failed', 'login_blocked', 'logout', 'sessions_ended', 'set_up', 'set_up_failed',
        'password_set', 'token_created', 'token_deleted', 'scope_denied')),
    -- Who: "session", "token", "local", "terminal" or "nobody".
    kind text not null,
    principal_id text not null default '',
    token_name text not null default '',
    address text not null default '',
    -- The scope and method that were refused, or the name and scopes of the token at hand. No secret.
    about text not null default '',
    primary key (at, id)
) partition by range (at);

create table audit.access_rest partition of audit.access default;

grant select on audit.access to crew_app;
grant insert (event, kind, principal_id, token_name, address, about) on audit.access to crew_app;
