-- Of the request that submitted the plan, which may come twice.
ALTER TABLE plans ADD COLUMN key TEXT;
CREATE UNIQUE INDEX plans_key ON plans (key) WHERE key IS NOT NULL;
