-- How far the clock was set forward, in microseconds, and the time that it showed then: what ended before is that much younger than it looks.
CREATE TABLE jumps (
  at INTEGER NOT NULL,
  by INTEGER NOT NULL
);
-- Held tasks that wait for something else before their instant.
CREATE INDEX tasks_later ON tasks (n) WHERE status = -4 AND gate <> 1 AND not_before > 0;
