-- How long finished tasks of no plan stay, JSON of plan.Keep; empty: nothing is said.
ALTER TABLE queues ADD COLUMN keep TEXT NOT NULL DEFAULT '';
-- Finished tasks of no plan, without items, by when they ended.
CREATE INDEX tasks_over ON tasks (queue, min(status, 2), ended) WHERE plan = 0 AND of = 0 AND ended > 0;
