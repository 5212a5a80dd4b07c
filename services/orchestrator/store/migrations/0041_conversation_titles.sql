-- The title is the beginning of the first message: a model may give a better one, once (TRN-016).
alter table conversations add column title_from_message boolean not null default false;
