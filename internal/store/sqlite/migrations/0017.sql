-- Items that others need and that a retry deleted. An item that is made with that index gets the number n again.
CREATE TABLE missing (
  of     INTEGER NOT NULL, -- n of the foreach task
  idx    INTEGER NOT NULL,
  n      INTEGER NOT NULL UNIQUE,
  absent INTEGER NOT NULL DEFAULT 0, -- the foreach task has no such item any more, and those who need it know
  PRIMARY KEY (of, idx)
) WITHOUT ROWID;
