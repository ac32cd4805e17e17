-- What a queue says of nodes: the only ones that serve it, those that do not, each a JSON list or empty, and how many of its tasks one of
-- them may have at once; 0: any number.
ALTER TABLE queues ADD COLUMN pin TEXT NOT NULL DEFAULT '';
ALTER TABLE queues ADD COLUMN ignored TEXT NOT NULL DEFAULT '';
ALTER TABLE queues ADD COLUMN node_threads INTEGER NOT NULL DEFAULT 0;
