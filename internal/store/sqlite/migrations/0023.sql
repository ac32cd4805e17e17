-- A schedule is one JSON document beside what queries ask for: see plan.Schedule. due is in microseconds, and NULL if nothing is to be
-- looked for.
CREATE TABLE schedules (
  id       BLOB PRIMARY KEY,
  name     TEXT NOT NULL UNIQUE,
  revision INTEGER NOT NULL,
  due      INTEGER,
  doc      TEXT NOT NULL,
  file     TEXT NOT NULL -- the text of its plan file, or ''
) WITHOUT ROWID;
CREATE INDEX schedules_due ON schedules (due) WHERE due IS NOT NULL;
UPDATE meta SET key = 'holder of balance' WHERE key = 'balancer';
-- An earlier version died before it had chosen all tasks of a retry: the job forgets the retry (jobRetry, stepNoted).
INSERT OR IGNORE INTO jobs (kind, ref) SELECT 10, plan FROM retries WHERE step = 0 AND (plan = 0 OR plan IN (SELECT n FROM plans));
