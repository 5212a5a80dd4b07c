-- Summaries that stand for older turns in the prompt (FLD-003). The log itself is never changed.

-- The first message of a turn. Runs say it too, but their rows are removed with time, and the numbers
-- of turns that a summary names have to stay.
alter table messages add column opens_turn boolean not null default false;

update messages m set opens_turn = true
where m.role = 'user' and m.author = 'person' and (
    m.run_id is null
    or not exists (
        select from messages earlier
        where earlier.conversation_id = m.conversation_id and earlier.seq < m.seq
            and earlier.run_id = m.run_id));

create table compactions (
    id bigint generated always as identity primary key,
    conversation_id uuid not null references conversations on delete cascade,
    -- The summary stands for the messages up to here ...
    upto_seq integer not null,
    -- ... which are the turns from the first to this one.
    upto_turn integer not null,
    -- The last message there was when it was made: what a provider counted before is no measure after.
    made_after_seq integer not null,
    -- As the model is told it, fence and all.
    told text not null,
    run_id uuid references runs on delete set null,
    created_at timestamptz not null default now(),
    unique (conversation_id, upto_seq)
);
