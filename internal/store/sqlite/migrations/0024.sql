-- Whether a plan starts beside other runs of its name: see plan.Plan. The index has the runs that have not ended.
ALTER TABLE plans ADD COLUMN overlap TEXT NOT NULL DEFAULT '';
CREATE INDEX plans_unended ON plans (name) WHERE ended = 0;
