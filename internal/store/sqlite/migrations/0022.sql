-- The settings of a queue that only Sluice reads are one JSON document: see plan.QueueSettings. Durations are written as in "90s".
ALTER TABLE queues ADD COLUMN settings TEXT NOT NULL DEFAULT '';
UPDATE queues SET settings = json_patch('{}', json_object(
  'on_lost', nullif(on_lost, ''),
  'secrets', json(nullif(secrets, '')),
  'keep', json((SELECT json_group_object(key, value || 'ns') FROM json_each(nullif(keep, '')) HAVING count(*) > 0))))
WHERE on_lost <> '' OR secrets <> '' OR keep <> '';
ALTER TABLE queues DROP COLUMN on_lost;
ALTER TABLE queues DROP COLUMN secrets;
ALTER TABLE queues DROP COLUMN keep;
