-- The whole of what tasks printed, in chunks. A result has a new n each time it is written, so that who reads an older one notices.
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
