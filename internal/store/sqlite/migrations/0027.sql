-- Groups of queues: see plan.Group, which doc has as JSON. spent is that of its rate, as queues have it.
CREATE TABLE queue_groups (
  name  TEXT PRIMARY KEY,
  doc   TEXT NOT NULL,
  spent INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
