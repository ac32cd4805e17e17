-- Plans take turns in a queue: its tasks of each plan are a lane, and those of no plan are one. A queue in order of age has one lane.
ALTER TABLE plans ADD COLUMN priority INTEGER NOT NULL DEFAULT 0; -- 0: plan.DefaultPriority
UPDATE tasks SET lane = CASE (SELECT sort FROM queues WHERE n = queue) WHEN '' THEN plan ELSE 0 END WHERE n IN (SELECT n FROM tasks INDEXED BY tasks_ready WHERE status = -2);
DROP INDEX tasks_ready;
CREATE INDEX tasks_ready ON tasks (queue, lane, prio, id) WHERE status = -2;
-- Of the kind that moved tasks to the lane of their plan.
DELETE FROM jobs WHERE kind = 6;
