-- What becomes of a queue's tasks whose node died, where they do not say it themselves: retry, fail, or nothing.
ALTER TABLE queues ADD COLUMN on_lost TEXT NOT NULL DEFAULT '';
