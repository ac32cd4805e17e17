package sqlite

import (
	"context"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

func (r *retrier) Queues(ctx context.Context) (map[plan.QueueID]bool, error) {
	there := map[plan.QueueID]bool{}
	return there, r.read(ctx, func(c *conn) {
		for q := c.query("SELECT id FROM queues WHERE " + isQueue); q.next(); {
			there[plan.QueueID{ID: q.id(0)}] = true
		}
	})
}

const retriedTasks = `SELECT t.n, t.id, t.name, t.status, t.flags, t.of, coalesce(f.items, 0), q.id
	FROM json_each(?) AS j CROSS JOIN tasks AS t ON t.id = unhex(j.value) LEFT JOIN foreachs AS f ON f.n = t.n
	LEFT JOIN queues AS q ON q.n = t.queue AND q.` + isQueue + " WHERE t.plan = ?"

// Tasks refuses to go on in one transaction if the tasks have many items.
func (r *retrier) Tasks(ctx context.Context, ids []plan.TaskID) (found []engine.Retaken[int64], err error) {
	items := 0
	err = r.read(ctx, func(c *conn) {
		for q := c.query(retriedTasks, listIDs(ids), r.of); q.next(); {
			flags := q.int(4)
			found = append(found, engine.Retaken[int64]{Key: q.int(0), Of: q.int(5), Retaken: rules.Retaken{
				ID: plan.TaskID{ID: q.id(1)}, Name: q.text(2), Status: plan.Status(q.int(3)), Queue: plan.QueueID{ID: q.id(7)},
				Foreach: flags&flagForeach != 0, Expanded: flags&flagExpanded != 0, Items: int(q.int(6)),
			}})
			items += int(q.int(6))
		}
	})
	if r.tx != nil && items > r.s.retrySize {
		err = errLarge
	}
	return found, err
}

func (r *retrier) Parents(ctx context.Context, tasks []int64) (parents map[int64][]int64, waits map[int64]bool, err error) {
	waits = map[int64]bool{}
	err = r.read(ctx, func(c *conn) {
		parents = c.parentsOf(tasks)
		for p, f := range c.factsOf(parents) {
			waits[p] = f.outcome == 0
		}
	})
	return parents, waits, err
}

// belowRetried finds what is below tasks that a retry takes, and has not finished: their items, and their children. The last column tells
// children from items.
const belowRetried = `SELECT t.n, t.status, t.name, t.id, t.gate, 1 FROM json_each(?1) AS j CROSS JOIN kids AS k ON k.parent = j.value
		CROSS JOIN tasks AS t ON t.n = k.child WHERE t.outcome = 0
	UNION ALL SELECT t.n, t.status, t.name, t.id, t.gate, 0 FROM json_each(?1) AS j CROSS JOIN tasks AS t INDEXED BY tasks_of ON t.of = j.value AND t.of <> 0
		WHERE t.outcome = 0`

// Below counts a task whose parents have decided, and that a retry holds up, as waiting to run.
func (r *retrier) Below(ctx context.Context, s *engine.Selection[int64], check func(int64, *plan.Task, bool) error) (err error) {
	var taken []int64
	for i := range s.Tasks {
		taken = append(taken, s.Tasks[i].Key)
	}
	broken := r.read(ctx, func(c *conn) {
		q := c.query(belowRetried, list(taken))
		for err == nil && q.next() {
			t := plan.Task{ID: plan.TaskID{ID: q.id(3)}, Status: plan.Status(q.int(1)), Name: q.text(2)}
			hold := q.int(4)
			err = check(q.int(0), &t, hold == forInstant || hold == forItems || hold == forPlan && q.bool(5))
		}
		q.close()
	})
	return cmpErr(err, broken)
}
