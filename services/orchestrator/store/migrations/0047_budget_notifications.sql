-- That a budget is nearly spent is told like everything else the owner is told (FLD-016).

alter table notifications drop constraint notifications_kind_check;
alter table notifications add constraint notifications_kind_check check (kind in (
    'trouble', 'recovered', 'approval', 'budget'));

-- What a budget was told with in its period. The mark stays when the notification is swept, so that one
-- that was told early in a month is not told again in it.
alter table budget_notices
    add column notification_id uuid unique references notifications on delete set null;

create index notifications_open_budget on notifications (id) where kind = 'budget' and over_at is null;
