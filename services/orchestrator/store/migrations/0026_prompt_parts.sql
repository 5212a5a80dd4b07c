-- What the stable parts of the last prompt were, to say which of them moved (FLD-012).
create table prompt_parts (
    conversation_id uuid primary key references conversations on delete cascade,
    -- SHA-256 in hexadecimal by name of the part.
    digests json not null
);
