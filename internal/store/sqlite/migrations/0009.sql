-- How many of failed are foreach tasks that failed because some of their items did.
ALTER TABLE plans ADD COLUMN by_items INTEGER NOT NULL DEFAULT 0;
UPDATE plans SET by_items = (SELECT count(*) FROM tasks WHERE tasks.plan = plans.n AND tasks.status > 1 AND tasks.reason = 'items') WHERE failed > 0;
