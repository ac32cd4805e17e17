-- Retries that are being made, and the tasks that each takes. A plan notes the retry that is made of it: until that is
-- over nothing of the plan is queued or claimed, and it does not end.
ALTER TABLE plans ADD COLUMN retry INTEGER NOT NULL DEFAULT 0;
CREATE INDEX plans_retry ON plans (n) WHERE retry <> 0;
CREATE TABLE retries (
  n       INTEGER PRIMARY KEY AUTOINCREMENT,
  plan    INTEGER NOT NULL,           -- n, or 0 for none
  at      INTEGER NOT NULL,           -- when its process was last at it
  step    INTEGER NOT NULL DEFAULT 0, -- see retry_steps.go
  task    INTEGER NOT NULL DEFAULT 0, -- n of the last task with which that step is done
  past    INTEGER NOT NULL DEFAULT 0, -- how far it came with the next one
  closing TEXT NOT NULL,              -- that of the plan as the retry began
  params  BLOB                        -- those of the plan once the retry is decided; NULL: the same
);
CREATE TABLE retried (
  retry  INTEGER NOT NULL,
  task   INTEGER NOT NULL, -- n
  how    INTEGER NOT NULL, -- see retry_steps.go
  queue  INTEGER,          -- n; NULL: nothing of the task is replaced. The rest is as in tasks and bodies
  rank   INTEGER,
  rule   TEXT,
  flags  INTEGER,
  def    BLOB,
  params BLOB,
  PRIMARY KEY (retry, task)
) WITHOUT ROWID;
