-- How long plans may run, and when that is over, as a clock had it that nobody sets. The index has only plans that have not ended.
ALTER TABLE plans ADD COLUMN timeout INTEGER NOT NULL DEFAULT 0;
ALTER TABLE plans ADD COLUMN deadline INTEGER NOT NULL DEFAULT 0;
CREATE INDEX plans_deadline ON plans (deadline) WHERE deadline > 0 AND ended = 0;
