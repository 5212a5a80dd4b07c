-- What a second model said of calls that would have run unattended (PIP-100 to 103).

-- Beside the request that its verdict led to: {"verdict", "reason", "route"}.
alter table approvals add column review json;

-- Its route, in the trail; empty when no second model judged the call.
alter table audit.calls add column reviewed_by text not null default '';

grant insert (reviewed_by) on audit.calls to crew_app;
