-- Names of params that are never shown, a JSON list; empty: none.
ALTER TABLE queues ADD COLUMN secrets TEXT NOT NULL DEFAULT '';
