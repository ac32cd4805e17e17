package plan

// Counts says how many tasks of a plan are in which state. Each task is counted in one field, so
// the fields up to Orphaned add up to all tasks that people see.
//
// A foreach task with items is counted in no state, because its items are. It is one of Gathering,
// and one of Gathered once it has ended. Before its items exist it counts like any other task. It
// stays so if it ends without items: it failed to make them, was skipped or cancelled, or its list
// was empty.
//
// A failure that the plan allows, by continue_on_error of its task or as one of max_failures, is one of
// Allowed, and not one of Failed, Terminated or Orphaned. A foreach task with max_failures that went wrong
// counts by its status, because its items do not.
type Counts struct {
	Held       int `json:"held"`
	Queued     int `json:"queued"`
	Claimed    int `json:"claimed"`
	Running    int `json:"running"`
	Succeeded  int `json:"succeeded"`
	Failed     int `json:"failed"`
	Allowed    int `json:"allowed"`
	Terminated int `json:"terminated"`
	Cancelled  int `json:"cancelled"`
	Skipped    int `json:"skipped"`
	Orphaned   int `json:"orphaned"`
	Gathering  int `json:"gathering"` // foreach tasks that have items and have not ended
	Gathered   int `json:"gathered"`  // foreach tasks that have items and have ended
}

// HasItems reports whether the task is a foreach task whose items are all in, and has at least one.
func (t *Task) HasItems() bool { return t.Expanded && t.Items > 0 }

// Gathers reports whether the items of a foreach task are counted and shown in its place. items is as
// HasItems says, and budget says that the task has MaxFailures.
func (s Status) Gathers(items, budget bool) bool { return items && !(budget && s.Wrong()) }

// Gathers reports whether the items of the task are counted and shown in its place.
func (t *Task) Gathers() bool { return t.Status.Gathers(t.HasItems(), t.MaxFailures != "") }

// Allowed reports whether a task went wrong and its plan allows that.
func (s Status) Allowed(continueOnError bool) bool {
	return continueOnError && s.Wrong()
}

// Allowed reports whether the task went wrong and its plan allows that.
func (t *Task) Allowed() bool { return t.Status.Allowed(t.ContinueOnError) }

// Plus returns the sums of these counts and so many times others.
func (c Counts) Plus(o Counts, times int) Counts {
	others := o.all()
	for i, n := range c.all() {
		*n += times * *others[i]
	}
	return c
}

func (c *Counts) all() []*int {
	return []*int{
		&c.Held, &c.Queued, &c.Claimed, &c.Running, &c.Succeeded, &c.Failed, &c.Allowed, &c.Terminated, &c.Cancelled, &c.Skipped, &c.Orphaned,
		&c.Gathering, &c.Gathered,
	}
}

// Unfinished returns how many tasks have not ended, of those that are counted in a state.
func (c Counts) Unfinished() int { return c.Held + c.Queued + c.Claimed + c.Running }

// Broken returns how many tasks make the plan fail.
func (c Counts) Broken() int { return c.Failed + c.Terminated + c.Orphaned }

// Done returns how many tasks have ended, of those that are counted in a state.
func (c Counts) Done() int {
	return c.Succeeded + c.Broken() + c.Allowed + c.Cancelled + c.Skipped
}

// Total returns how many tasks are counted in a state: all that people see.
func (c Counts) Total() int { return c.Unfinished() + c.Done() }

// Stored returns how many tasks a store has of the plan, foreach tasks that have items included.
func (c Counts) Stored() int { return c.Total() + c.Gathering + c.Gathered }

// Settled reports whether every task of the plan has ended.
func (c Counts) Settled() bool { return c.Unfinished() == 0 && c.Gathering == 0 }
