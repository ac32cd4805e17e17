CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE plans (
  n          INTEGER PRIMARY KEY,
  id         BLOB NOT NULL UNIQUE,
  name       TEXT NOT NULL,
  run        INTEGER NOT NULL,
  state      INTEGER NOT NULL,
  closing    TEXT NOT NULL DEFAULT '',
  on_failure TEXT NOT NULL DEFAULT '',
  params     BLOB,
  source     TEXT NOT NULL DEFAULT '',
  own        INTEGER NOT NULL DEFAULT 0,
  keep       INTEGER NOT NULL DEFAULT 0, -- nanoseconds
  edits      INTEGER NOT NULL DEFAULT 0,
  leaving    INTEGER NOT NULL DEFAULT 0, -- its deletion has begun
  created    INTEGER NOT NULL,           -- microseconds since 1970, as all instants
  modified   INTEGER NOT NULL,
  ended      INTEGER NOT NULL DEFAULT 0,
  held       INTEGER NOT NULL DEFAULT 0, -- how many tasks are where
  queued     INTEGER NOT NULL DEFAULT 0,
  claimed    INTEGER NOT NULL DEFAULT 0,
  running    INTEGER NOT NULL DEFAULT 0,
  succeeded  INTEGER NOT NULL DEFAULT 0,
  failed     INTEGER NOT NULL DEFAULT 0,
  terminated INTEGER NOT NULL DEFAULT 0,
  cancelled  INTEGER NOT NULL DEFAULT 0,
  skipped    INTEGER NOT NULL DEFAULT 0,
  orphaned   INTEGER NOT NULL DEFAULT 0,
  allowed     INTEGER NOT NULL DEFAULT 0, size INTEGER NOT NULL DEFAULT 0, key TEXT, gathering INTEGER NOT NULL DEFAULT 0, def BLOB, retry INTEGER NOT NULL DEFAULT 0, gathered INTEGER NOT NULL DEFAULT 0, overlap TEXT NOT NULL DEFAULT '', priority INTEGER NOT NULL DEFAULT 0, timeout INTEGER NOT NULL DEFAULT 0, deadline INTEGER NOT NULL DEFAULT 0, finally INTEGER NOT NULL DEFAULT 0, ending INTEGER NOT NULL DEFAULT 0,
  UNIQUE (name, run)
);
CREATE INDEX plans_submitting ON plans (modified) WHERE state = -4;
CREATE INDEX plans_closed ON plans (n) WHERE closing <> '' AND ended = 0;
CREATE TABLE queues (
  n         INTEGER PRIMARY KEY,
  id        BLOB NOT NULL UNIQUE,
  name      TEXT NOT NULL UNIQUE,
  plugin    TEXT NOT NULL,
  threads   INTEGER NOT NULL,
  unlimited INTEGER NOT NULL,
  sort      TEXT NOT NULL,
  queued    INTEGER NOT NULL DEFAULT 0,
  active    INTEGER NOT NULL DEFAULT 0
, pin TEXT NOT NULL DEFAULT '', ignored TEXT NOT NULL DEFAULT '', node_threads INTEGER NOT NULL DEFAULT 0, settings TEXT NOT NULL DEFAULT '', spent INTEGER NOT NULL DEFAULT 0);
CREATE INDEX queues_open ON queues (n) WHERE queued > 0 AND (unlimited = 1 OR active < threads);
CREATE TABLE nodes (
  name        TEXT PRIMARY KEY,
  max_threads INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE instances (
  n     INTEGER PRIMARY KEY,
  id    BLOB NOT NULL UNIQUE,
  node  TEXT NOT NULL,
  body  BLOB NOT NULL,              -- JSON
  beats INTEGER NOT NULL DEFAULT 0,
  beat  INTEGER NOT NULL,           -- when
  gone  INTEGER NOT NULL DEFAULT 0, -- when, or 0
  last  INTEGER NOT NULL DEFAULT 0  -- the highest n of any task then: only tasks up to it can name this instance
);
CREATE TABLE tasks (
  n          INTEGER PRIMARY KEY,
  status     INTEGER NOT NULL,
  gate       INTEGER NOT NULL,           -- what a held task waits for, see gate in tasks.go
  plan       INTEGER NOT NULL,           -- n, or 0 for none
  queue      INTEGER NOT NULL,           -- n
  flags      INTEGER NOT NULL,           -- see flag in tasks.go
  outcome    INTEGER NOT NULL DEFAULT 0, -- plan.Outcome, or 0
  out_len    INTEGER NOT NULL DEFAULT 0, -- bytes of its output, wherever it lies
  attempt    INTEGER NOT NULL DEFAULT 0,
  token      INTEGER NOT NULL DEFAULT 0, -- of the last claim
  instance   INTEGER NOT NULL DEFAULT 0, -- n, of the present claim or the last one
  cancel     INTEGER NOT NULL DEFAULT 0, -- a person wants it ended
  lane       INTEGER NOT NULL DEFAULT 0, -- of queued tasks: the plan's n if a node of its own runs it
  prio       INTEGER NOT NULL DEFAULT 0, -- of queued tasks: less is claimed first, then the id
  rank       INTEGER NOT NULL,
  rule       TEXT,                       -- plan.When
  of         INTEGER NOT NULL,           -- n of the foreach task that it is an item of, or 0
  idx        INTEGER NOT NULL,
  rescues    INTEGER NOT NULL DEFAULT 0,
  not_before INTEGER NOT NULL DEFAULT 0,
  modified   INTEGER NOT NULL,
  started    INTEGER NOT NULL DEFAULT 0,
  ended      INTEGER NOT NULL DEFAULT 0,
  id         BLOB NOT NULL,
  name       TEXT NOT NULL,
  reason     TEXT,                       -- plan.Reason
  detail     TEXT,
  exit       TEXT,                       -- JSON of plan.Exit
  output     BLOB                        -- JSON; NULL: null, or in outputs, or put together from those of its items
, subject TEXT);
CREATE UNIQUE INDEX tasks_id ON tasks (id);
CREATE INDEX tasks_plan ON tasks (plan, id);
CREATE UNIQUE INDEX tasks_name ON tasks (plan, name) WHERE plan <> 0;
CREATE INDEX tasks_of ON tasks (of, idx) WHERE of <> 0;
CREATE INDEX tasks_mine ON tasks (instance) WHERE status IN (-1, 0);
CREATE INDEX tasks_cancel ON tasks (instance) WHERE cancel = 1;
CREATE INDEX tasks_root ON tasks (plan) WHERE status = -4 AND gate = 0;
CREATE INDEX tasks_delay ON tasks (not_before) WHERE status = -4 AND gate = 1;
CREATE TABLE bodies (
  n       INTEGER PRIMARY KEY,
  created INTEGER NOT NULL,
  def     BLOB,              -- JSON of plan.Definition without what is in tasks; NULL: nothing
  params  BLOB,
  needs   BLOB,              -- its parents, see parents.go; NULL: none
  parents INTEGER NOT NULL   -- how many
);
CREATE TABLE outputs (
  n      INTEGER PRIMARY KEY,
  output BLOB NOT NULL
);
CREATE TABLE gates (
  n       INTEGER PRIMARY KEY,
  waits   INTEGER NOT NULL, -- see gate in parents.go
  bytes   INTEGER NOT NULL, -- of finished parents' outputs, in sum
  largest INTEGER NOT NULL
);
CREATE TABLE kids (
  parent INTEGER NOT NULL,
  child  INTEGER NOT NULL,
  PRIMARY KEY (parent, child)
) WITHOUT ROWID;
CREATE TABLE frozen (
  n      INTEGER PRIMARY KEY,
  inputs BLOB NOT NULL -- JSON
);
CREATE TABLE foreachs (
  n       INTEGER PRIMARY KEY,
  items   INTEGER NOT NULL,
  made    INTEGER NOT NULL, -- how many of them are in
  undone  INTEGER NOT NULL, -- how many have not finished, be they made or not
  failed  INTEGER NOT NULL,
  seen    INTEGER NOT NULL, -- the set of their outcomes
  bytes   INTEGER NOT NULL  -- of their outputs
);
CREATE TABLE lists (
  of    INTEGER NOT NULL,
  first INTEGER NOT NULL, -- index of its first item
  items BLOB NOT NULL,    -- JSON
  UNIQUE (of, first)
);
CREATE TABLE jobs (
  seq  INTEGER PRIMARY KEY,
  kind INTEGER NOT NULL,           -- see job in jobs.go
  ref  INTEGER NOT NULL,           -- n of the task or plan
  past NOT NULL DEFAULT 0,         -- how far it came; what it is depends on the kind
  UNIQUE (kind, ref)
);
CREATE TABLE logs (
  task    INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  stream  INTEGER NOT NULL,
  text    TEXT NOT NULL,
  PRIMARY KEY (task, seq)
) WITHOUT ROWID;
CREATE TABLE changes (
  seq  INTEGER PRIMARY KEY AUTOINCREMENT,
  at   INTEGER NOT NULL,
  body BLOB NOT NULL -- see changes.go
);
CREATE TABLE runs (
  name TEXT PRIMARY KEY,
  run  INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX plans_over ON plans (ended + keep / 1000) WHERE ended > 0 AND keep > 0;
CREATE INDEX plans_old ON plans (ended) WHERE ended > 0 AND keep = 0;
CREATE INDEX plans_leaving ON plans (n) WHERE leaving = 1;
CREATE TABLE results (
  n      INTEGER PRIMARY KEY AUTOINCREMENT,
  task   INTEGER NOT NULL,
  stream INTEGER NOT NULL,
  size   INTEGER NOT NULL, -- bytes
  UNIQUE (task, stream)
);
CREATE TABLE chunks (
  result INTEGER NOT NULL,
  seq    INTEGER NOT NULL,
  data   BLOB NOT NULL,
  UNIQUE (result, seq)
);
CREATE UNIQUE INDEX plans_key ON plans (key) WHERE key IS NOT NULL;
CREATE TABLE files (plan INTEGER PRIMARY KEY, text TEXT NOT NULL, dir TEXT NOT NULL);
CREATE TABLE jumps (
  at INTEGER NOT NULL,
  by INTEGER NOT NULL
);
CREATE TABLE progress (
  instance INTEGER PRIMARY KEY,
  said TEXT NOT NULL
);
CREATE INDEX tasks_over ON tasks (queue, min(status, 2), ended) WHERE plan = 0 AND of = 0 AND ended > 0;
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
CREATE TABLE schedules (
  id       BLOB PRIMARY KEY,
  name     TEXT NOT NULL UNIQUE,
  revision INTEGER NOT NULL,
  due      INTEGER,
  doc      TEXT NOT NULL,
  file     TEXT NOT NULL -- the text of its plan file, or ''
) WITHOUT ROWID;
CREATE INDEX schedules_due ON schedules (due) WHERE due IS NOT NULL;
CREATE INDEX plans_unended ON plans (name) WHERE ended = 0;
CREATE INDEX tasks_ready ON tasks (queue, lane, prio, id) WHERE status = -2;
CREATE TABLE queue_groups (
  name  TEXT PRIMARY KEY,
  doc   TEXT NOT NULL,
  spent INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX tasks_subject ON tasks (subject, id) WHERE subject IS NOT NULL AND status IN (-4, -2, -1, 0);
CREATE INDEX queues_weighted ON queues (n) WHERE instr(settings, '"group":') + instr(settings, '"weight":') > 0;
CREATE TABLE rolled (
  task  INTEGER PRIMARY KEY, -- n
  batch BLOB NOT NULL
);
CREATE INDEX rolled_batch ON rolled (batch);
CREATE INDEX plans_deadline ON plans (deadline) WHERE deadline > 0 AND ended = 0;
CREATE INDEX tasks_finally ON tasks (plan) WHERE status = -4 AND gate = 6;
INSERT INTO meta VALUES ('task', 0);
