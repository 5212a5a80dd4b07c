-- Finding what was said (TRN-335 to 343).

create extension if not exists pg_trgm;

-- Text as it is compared: without case, without accents of Latin, Greek and Cyrillic letters, composed,
-- and with d for đ. Marks of other scripts, such as Japanese voicing, stay. Nothing in it depends on
-- the database's locale, so an index on it stays right.
create function folded(text) returns text
    language sql immutable strict parallel safe
    return lower(
        normalize(
            translate(regexp_replace(normalize($1, nfd), '[\u0300-\u036f]', '', 'g'), 'đĐ', 'dd'), nfc)
        collate "pg_c_utf8");

create index messages_said on messages using gin (folded(content) gin_trgm_ops)
    where role in ('user', 'assistant');
