-- The file keeps the instants that held tasks wait for as a clock had them that nobody ever set. A jump of the clock changes the row shift
-- of meta, and no task.
DROP INDEX tasks_later;
