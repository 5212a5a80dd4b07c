-- Finding what was said (TRN-335 to 343).

-- Text as it is compared: without case, without accents of Latin, Greek and Cyrillic letters, composed,
-- and with d for đ. Marks of other scripts, such as Japanese voicing, stay. Nothing in it depends on
-- the database's locale, so what was stored stays right when that changes.
create function folded(text) returns text
    language sql immutable strict parallel safe
    return case
        when octet_length($1) = length($1) then lower($1 collate "pg_c_utf8")
        else lower(
            normalize(
                translate(regexp_replace(normalize($1, nfd), '[\u0300-\u036f]', '', 'g'), 'đĐ', 'dd'), nfc)
            collate "pg_c_utf8")
    end;

-- Kept folded and searched from the newest on. An index of trigrams was measured: it finds rare words
-- sooner and makes storing a message of 1 KB several times as slow.
alter table messages add column said text
    generated always as (case when role in ('user', 'assistant') then folded(content) end) stored;
