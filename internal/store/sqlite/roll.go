package sqlite

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var _ store.Roller = (*Store)(nil)

// tasksToRoll selects free tasks of a queue that ended in one way before an instant.
var tasksToRoll = "SELECT t.id, t.status, t.ended FROM tasks AS t INDEXED BY tasks_over WHERE " + isFree + " AND t.queue = ?1 AND " + keptStatus + " = ?2 AND " +
	endedBefore("?3") + " ORDER BY t.ended LIMIT ?4 + 0"

func (s *Store) ToRoll(ctx context.Context, q plan.QueueID, limits map[plan.Status]time.Duration, limit int) (found []plan.Task, err error) {
	err = s.write(ctx, func(t *tx) error { // which knows the clock that the sweep goes by
		found = nil
		n, err := t.queueNumber(q)
		if err != nil || t.noted(nil) != 0 {
			return err
		}
		type ended struct { // of which a list may grow: a plan.Task is large
			id     plan.ID
			status plan.Status
			at     int64
		}
		var all []ended
		for status, keep := range limits {
			for r := t.query(tasksToRoll, n, int64(status), t.at.Add(-keep).UnixMicro(), limit); r.next(); {
				all = append(all, ended{r.id(0), plan.Status(r.int(1)), r.int(2)})
			}
		}
		found = make([]plan.Task, len(all))
		for i, e := range all {
			found[i] = plan.Task{ID: plan.TaskID{ID: e.id}, Status: e.status, Ended: instant(e.at)}
		}
		return nil
	})
	slices.SortStableFunc(found, func(a, b plan.Task) int { return a.Ended.Compare(b.Ended) })
	return found[:min(len(found), limit)], err
}

// rollTasks puts the free tasks of a list of ids and ends into a batch.
var rollTasks = "INSERT INTO rolled (task, batch) SELECT t.n, ?2 FROM json_each(?1) AS j CROSS JOIN tasks AS t ON t.id = unhex(j.value ->> 0) WHERE t.ended = j.value ->> 1 AND " + isFree

func (s *Store) BeginBatch(ctx context.Context, id plan.ID, _ plan.QueueID, tasks []plan.Task) (in []plan.TaskID, err error) {
	list := make([][2]any, len(tasks))
	for i := range tasks {
		list[i] = [2]any{hex.EncodeToString(tasks[i].ID.ID[:]), micro(tasks[i].Ended)}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	err = s.write(ctx, func(t *tx) error {
		in = nil
		if t.noted(nil) == 0 { // else that retry may take some of them
			t.exec(rollTasks, string(text), id[:])
		}
		for _, b := range t.batches("r.batch = ?", id[:]) {
			in = b.Tasks
		}
		return nil
	})
	return in, err
}

// batches reads batches, the oldest first.
func (c *conn) batches(where string, args ...any) (all []store.Batch) {
	for r := c.query(`SELECT r.batch, q.id, t.id FROM rolled AS r INDEXED BY rolled_batch CROSS JOIN tasks AS t ON t.n = r.task CROSS JOIN queues AS q ON q.n = t.queue
		WHERE `+where+" ORDER BY r.batch, t.ended, t.n", args...); r.next(); {
		if id := r.id(0); len(all) == 0 || all[len(all)-1].ID != id {
			all = append(all, store.Batch{ID: id, Queue: plan.QueueID{ID: r.id(1)}})
		}
		last := &all[len(all)-1]
		last.Tasks = append(last.Tasks, plan.TaskID{ID: r.id(2)})
	}
	return all
}

func (s *Store) Batches(ctx context.Context) (all []store.Batch, err error) {
	err = s.read(ctx, func(c *conn) error {
		all = c.batches("r.batch > x''")
		return nil
	})
	return all, err
}

// logsOf reads the logs of a list of ids.
const logsOf = `SELECT t.id, l.at, l.attempt, l.stream, l.text FROM json_each(?) AS j CROSS JOIN tasks AS t ON t.id = unhex(j.value) CROSS JOIN logs AS l ON l.task = t.n
	ORDER BY l.task, l.seq`

func (s *Store) Logs(ctx context.Context, tasks []plan.TaskID) (logs map[plan.TaskID][]plan.LogEntry, err error) {
	err = s.read(ctx, func(c *conn) error {
		logs = make(map[plan.TaskID][]plan.LogEntry, len(tasks))
		for r := c.query(logsOf, listIDs(tasks)); r.next(); {
			id := plan.TaskID{ID: r.id(0)}
			logs[id] = append(logs[id], r.logEntry(1))
		}
		return nil
	})
	return logs, err
}

// EndBatch implements store.Roller. A sweep continues the deletion if this process dies.
func (s *Store) EndBatch(ctx context.Context, id plan.ID, received bool) error {
	err := s.write(ctx, func(t *tx) error {
		if received {
			t.exec("UPDATE rolled SET batch = x'' WHERE batch = ?", id[:])
		} else {
			t.exec("DELETE FROM rolled WHERE batch = ?", id[:])
		}
		return nil
	})
	for done := false; !done && received && err == nil; {
		err = s.write(ctx, func(t *tx) (err error) {
			t.budget = protocol.DefaultBudget
			_, done, err = t.CompleteDeletions(ctx)
			return err
		})
	}
	return err
}

// receivedTasks selects tasks of batches that were received.
const receivedTasks = "SELECT " + taskColumns + ", " + logCost + " FROM rolled AS r INDEXED BY rolled_batch CROSS JOIN tasks AS t ON t.n = r.task WHERE r.batch = x'' LIMIT ? + 0"

func (t *tx) CompleteDeletions(context.Context) (n int, done bool, err error) {
	found := t.dying(receivedTasks, t.budget)
	most := t.budget
	chunk := t.affordable(found)
	t.deleteRows(chunk)
	return len(chunk), len(chunk) == len(found) && len(found) < most, nil
}

// rolling returns which of these tasks are in a batch.
func (c *conn) rolling(ns []int64) (rolling []plan.TaskID) {
	for r := c.query("SELECT t.id FROM json_each(?) AS j CROSS JOIN rolled AS r ON r.task = j.value CROSS JOIN tasks AS t ON t.n = r.task", list(ns)); r.next(); {
		rolling = append(rolling, plan.TaskID{ID: r.id(0)})
	}
	return rolling
}
