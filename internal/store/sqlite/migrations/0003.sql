-- How many tasks a plan is submitted with; 0: that is not known before it is ready.
ALTER TABLE plans ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
