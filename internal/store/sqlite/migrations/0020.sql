-- Edges stay inside: a task needs tasks of its own plan, or, of no plan, tasks of no plan, and nobody needs an item. A task of no plan has no
-- items. Before this runs, edges.go refuses a store with unfinished tasks that have other edges, and cuts those of finished ones.
INSERT OR REPLACE INTO outputs (n, output)
  SELECT f.n, CAST('[' || (
    SELECT coalesce(group_concat(coalesce(CAST(i.output AS TEXT), CAST(o.output AS TEXT), 'null'), ','), '')
    FROM (SELECT n, output FROM tasks AS i WHERE i.of = f.n ORDER BY i.idx) AS i LEFT JOIN outputs AS o ON o.n = i.n
  ) || ']' AS BLOB)
  FROM tasks AS f WHERE f.plan = 0 AND f.flags & 2 AND f.flags & 32;
UPDATE tasks SET out_len = (SELECT length(output) FROM outputs AS o WHERE o.n = tasks.n) WHERE plan = 0 AND flags & 2 AND flags & 32;
UPDATE bodies SET def = CAST(json_remove(CAST(def AS TEXT), '$.foreach') AS BLOB) WHERE n IN (SELECT n FROM tasks WHERE plan = 0 AND flags & 2);
DELETE FROM foreachs WHERE n IN (SELECT n FROM tasks WHERE plan = 0 AND flags & 2);
UPDATE tasks SET flags = flags & ~ (2 | 4 | 16 | 32 | 512) WHERE plan = 0 AND flags & 2;
UPDATE tasks SET of = 0, idx = 0 WHERE plan = 0 AND of <> 0;
DELETE FROM jobs WHERE kind IN (9, 12);
DROP TABLE missing;
DROP TABLE ghosts;
ALTER TABLE plans DROP COLUMN shared;
