-- Each task is in one of a plan's counts. A failure that the plan allows is in allowed. A foreach task that has items (flag 512) is in gathering
-- or, once it has ended, in gathered, and in no other.
UPDATE tasks SET flags = flags | 512 WHERE n IN (SELECT n FROM foreachs WHERE items > 0) AND flags & 16 <> 0;
ALTER TABLE plans RENAME COLUMN broken TO allowed;
ALTER TABLE plans RENAME COLUMN by_items TO gathering;
ALTER TABLE plans ADD COLUMN gathered INTEGER NOT NULL DEFAULT 0;
UPDATE plans SET allowed = failed + terminated + orphaned - allowed, gathering = 0;
UPDATE plans SET held = c.held, succeeded = c.succeeded, failed = c.failed, allowed = c.allowed, terminated = c.terminated, cancelled = c.cancelled,
  skipped = c.skipped, orphaned = c.orphaned, gathering = c.gathering, gathered = c.gathered
FROM (
  SELECT plan,
    sum(NOT items AND status = -4) AS held,
    sum(NOT items AND status = 1) AS succeeded,
    sum(NOT items AND NOT allows AND status > 1) AS failed,
    sum(NOT items AND allows AND (status > 1 OR status IN (-3, -6))) AS allowed,
    sum(NOT items AND NOT allows AND status = -3) AS terminated,
    sum(NOT items AND status = -5 AND coalesce(reason, '') <> 'skipped') AS cancelled,
    sum(NOT items AND status = -5 AND coalesce(reason, '') = 'skipped') AS skipped,
    sum(NOT items AND NOT allows AND status = -6) AS orphaned,
    sum(items AND status IN (-4, -2, -1, 0)) AS gathering,
    sum(items AND status NOT IN (-4, -2, -1, 0)) AS gathered
  FROM (
    SELECT plan, status, reason, flags & 512 <> 0 AS items, flags & 1 <> 0 AS allows FROM tasks
    WHERE plan IN (SELECT n FROM plans WHERE allowed > 0) OR plan IN (SELECT plan FROM tasks WHERE n IN (SELECT n FROM foreachs) AND flags & 512 <> 0)
  )
  WHERE plan <> 0
  GROUP BY plan
) AS c
WHERE plans.n = c.plan;
