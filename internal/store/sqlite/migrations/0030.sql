-- Finished tasks of no plan that are handed over: see store.Roller. An empty batch was received, and its tasks are to be deleted. A program
-- that does not know of batches would delete tasks that nobody has received.
CREATE TABLE rolled (
  task  INTEGER PRIMARY KEY, -- n
  batch BLOB NOT NULL
);
CREATE INDEX rolled_batch ON rolled (batch);
