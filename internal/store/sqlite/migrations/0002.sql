-- The highest run that each name ever had: none comes again when its plans are deleted.
CREATE TABLE runs (
  name TEXT PRIMARY KEY,
  run  INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO runs SELECT name, max(run) FROM plans GROUP BY name;

-- What is to be deleted, each found without a look at what is kept: plans that say how long, by the instant when that is over; plans that
-- do not, by their end; and those whose deletion has begun.
DROP INDEX plans_ended;
CREATE INDEX plans_over ON plans (ended + keep / 1000) WHERE ended > 0 AND keep > 0;
CREATE INDEX plans_old ON plans (ended) WHERE ended > 0 AND keep = 0;
CREATE INDEX plans_leaving ON plans (n) WHERE leaving = 1;
