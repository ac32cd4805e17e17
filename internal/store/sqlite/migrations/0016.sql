-- What an audit looks at, without a look at what has ended: plans that have not, plans that were abandoned, and held tasks of no plan.
CREATE INDEX plans_open ON plans (n) WHERE ended = 0;
CREATE INDEX plans_abandoned ON plans (n) WHERE state = -6;
CREATE INDEX tasks_apart ON tasks (n) WHERE status = -4 AND gate > 1 AND plan = 0;
