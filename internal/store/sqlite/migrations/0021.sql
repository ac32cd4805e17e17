-- No sweep looks for faults any more, so that each counter is right from here on: check.go recomputes them for a person. Those of parents and
-- items are counted anew in recount.go.
UPDATE plans SET held = c.held, queued = c.queued, claimed = c.claimed, running = c.running, succeeded = c.succeeded, failed = c.failed,
  allowed = c.allowed, terminated = c.terminated, cancelled = c.cancelled, skipped = c.skipped, orphaned = c.orphaned, gathering = c.gathering,
  gathered = c.gathered
FROM (
  SELECT plan,
    sum(NOT items AND status = -4) AS held,
    sum(NOT items AND status = -2) AS queued,
    sum(NOT items AND status = -1) AS claimed,
    sum(NOT items AND status = 0) AS running,
    sum(NOT items AND status = 1) AS succeeded,
    sum(NOT items AND NOT allows AND status > 1) AS failed,
    sum(NOT items AND allows AND (status > 1 OR status IN (-3, -6))) AS allowed,
    sum(NOT items AND NOT allows AND status = -3) AS terminated,
    sum(NOT items AND status = -5 AND coalesce(reason, '') <> 'skipped') AS cancelled,
    sum(NOT items AND status = -5 AND coalesce(reason, '') = 'skipped') AS skipped,
    sum(NOT items AND NOT allows AND status = -6) AS orphaned,
    sum(items AND status IN (-4, -2, -1, 0)) AS gathering,
    sum(items AND status NOT IN (-4, -2, -1, 0)) AS gathered
  FROM (SELECT plan, status, reason, flags & 512 <> 0 AS items, flags & 1 <> 0 AS allows FROM tasks WHERE plan <> 0)
  GROUP BY plan
) AS c
WHERE plans.n = c.plan;
UPDATE queues SET queued = (SELECT count(*) FROM tasks WHERE tasks.queue = queues.n AND status = -2),
  active = (SELECT count(*) FROM tasks WHERE tasks.queue = queues.n AND status IN (-1, 0));
DELETE FROM meta WHERE key = 'audit';
DROP INDEX plans_open;
DROP INDEX plans_abandoned;
DROP INDEX tasks_apart;
