-- What a task is about, NULL if nothing says it: the definition in bodies has it too. Unfinished tasks are found by it.
ALTER TABLE tasks ADD COLUMN subject TEXT;
CREATE INDEX tasks_subject ON tasks (subject, id) WHERE subject IS NOT NULL AND status IN (-4, -2, -1, 0);
