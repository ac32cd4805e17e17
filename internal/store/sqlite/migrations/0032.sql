-- Tasks of finally are held until all others of their plan have ended, see forEnd in taskrow.go. finally says that a plan has some, and
-- ending how the others ended (0: they have not).
ALTER TABLE plans ADD COLUMN finally INTEGER NOT NULL DEFAULT 0;
ALTER TABLE plans ADD COLUMN ending INTEGER NOT NULL DEFAULT 0;
CREATE INDEX tasks_finally ON tasks (plan) WHERE status = -4 AND gate = 6;
