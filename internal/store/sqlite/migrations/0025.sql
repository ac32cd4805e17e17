-- How far the rate of a queue is used up, in microseconds: see rules.RateRoom. 0: nothing has started.
ALTER TABLE queues ADD COLUMN spent INTEGER NOT NULL DEFAULT 0;
