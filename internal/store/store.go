// Package store is the written contract of a store: what keeps plans, tasks, queues and instances, and is the only place where
// processes meet. It holds interfaces and their sentences, and no code; storetest tests each sentence, and the drivers memory,
// sqlite and mongodb keep them.
//
// # What holds for all of it
//
// A store decides nothing: what follows from what is asked of package plan. Every method may be called by any number of goroutines
// and processes at once. An error that is none of plan's sentinels, or [plan.ErrUnavailable], means that the write may or may not
// have been made; every method may be called again then, and does not do twice what it did already. Bad input changes nothing.
//
// The invariants, which hold whatever dies at whatever instant:
//
//  1. No queued, claimed or running task has a parent that has not finished, or a plan that is not ready.
//  2. A task leaves held once per attempt, by one conditional write.
//  3. Every finished parent is released in the end, whoever finished it and whoever died between finishing and releasing.
//  4. When a task is claimed, its params hold its parents' outputs, or it is marked ByReference and Inputs gives them.
//  5. Every write about an attempt names its claim, and a claim that is lost changes nothing any more.
//  6. No queue has more tasks claimed and running than its threads, no node, over all its instances, than its limit, nor of one queue
//     than that queue's NodeThreads.
//  7. Finishing costs O(children), claiming O(log n) a task; one turn changes at most its budget of documents.
//
// JSON keeps its value, every digit of its numbers included, but not its spelling.
//
// Times are of the store's clock. A driver is opened with the clock it uses, or reads its server's. A driver that uses the clock of the
// machine notices where that is set while the system runs, as far as the system tells. What was waiting goes by the time that went by: a
// delay lasts as long as before, a submission is abandoned and a plan deleted no sooner. Instants that people see are those of the clock.
package store

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// Node is what an execution node asks of a store.
type Node interface {
	// Register makes the instance known, with Beats 0. Its ID is the caller's to mint. Registering twice changes nothing: one that was
	// rescued stays gone, as its next Beat or Turn says, and who has left comes back with another ID. Of the instances that are Sole one
	// of each node's name is registered: another one is plan.ErrNameTaken until that one was rescued or has left, whether it beats or not.
	Register(ctx context.Context, i plan.Instance) error

	// Beat counts the instance's Beats up by one and returns what the store has to tell it, of its Plan as Turn does. Plugins, unless they
	// are nil, are the instance's from now on: for who looks at Instances; what it may claim its turns say. It returns
	// plan.ErrInstanceGone once the instance was rescued, has left, or was never registered.
	//
	// Progress, unless it is nil, is kept with the instance in place of what earlier beats said. It changes no task and no feed. Task and
	// Tasks show it of a running task whose present claim it names: so no other attempt has it, however late the beat comes.
	Beat(ctx context.Context, b plan.Beat) (plan.Beaten, error)

	// Leave ends an instance that holds nothing any more; what it still holds is rescued as by Rescue.
	Leave(ctx context.Context, i plan.InstanceID) error

	// Turn applies the endings, releases children, ends delays and claims, in this order, and answers with the tasks it claimed. A driver may claim
	// beside the rest where many tasks end, no limit counts, and there is more to claim than is asked for: what this turn queues or closes
	// then counts from the next claim on.
	//
	// Endings. An ending whose claim (task, attempt and token) is not the task's present claim is refused: it changes nothing and
	// its task is in Lost. The others are applied, all or none on stores with transactions, each in one write with its output.
	// Package rules says what an ending makes of its task (rules.Ended): the step. The step of an ending that queues or holds the task
	// goes by whether a person cancelled the task. If the plan of the task is closed, the task ends. On stores without transactions
	// this may come in a later write. An ending with a Delay leaves Started as it is. What was Printed replaces what there was, in the
	// same write, as PutResults would. Log entries are appended. A failure closes the plan where rules.StopsPlan says so.
	//
	// Exit is the exit status of the last attempt that ended. A task keeps it when it is skipped, cancelled or given back afterwards.
	// Detail and Reason tell why a task is as it is: a task that is queued again after a loss has none. Cancel ends with the task.
	//
	// Release. Each held child of a finished parent is treated as plan.Decide says: queued with the params of plan.Deliver (or
	// marked ByReference where plan.Copied says so), expanded into items, failed with plan.ReasonInput where that cannot be done (a
	// list in an output that plan.CheckInputs refuses is not read), or cancelled with plan.ReasonSkipped, which releases its own children in turn. When the last item of a foreach task has
	// finished it ends as rules.Settle says, with the list of its items' outputs as its output. When no task of a plan is
	// unfinished the plan ends as rules.Verdict says. What exceeds the budget is left for the next turn of any instance, and More
	// says so; children of what ended first are released first.
	//
	// Delays. Held tasks whose delay is over are queued, as far as the driver knows of them and half of the budget reaches; this turn may
	// claim them. Sweeps find the others.
	//
	// Claims. Up to Slots tasks are claimed: queued, of queues that the turn serves, as plan.Turn.Serves says, of Plan if it is given,
	// of no plan that is closed, within each queue's threads, its NodeThreads of the instance's node, and the limit of that node
	// (SetMaxThreads); a queue without a free thread, or without work, costs nothing, and so does a limit that is not set; one that is not
	// served costs a look at most, whatever waits in it. Within a queue the order is the queue's sort.
	// Queues with work take turns, so that none starves. A claim counts the attempt up by one, sets a new token, the instance and
	// its node, and Started if Start.
	//
	// End. Of a turn with a Plan the answer tells at last whether that plan has ended: Over, whoever ended it and however long ago, so
	// that its node learns of it also if others ended it, or an answer was lost. A plan that was deleted is over as well. One of which
	// the turn claimed a task is not.
	//
	// It returns plan.ErrInstanceGone, and does nothing at all, for an instance that is not registered.
	Turn(ctx context.Context, t plan.Turn) (plan.Turned, error)

	// Start takes claimed tasks to running. It returns those whose claim was lost. A turn with Start needs none of this.
	Start(ctx context.Context, claims []plan.Claim) (lost []plan.TaskID, err error)

	// Take moves a claimed task from the instance that claimed it, or from another program, where such can write, to this one, a runner,
	// which runs it, and returns it as a turn's Claimed would. The task's node must be the instance's and stays, so that limits go on
	// counting it. One conditional write sets a new token and the instance, and with Start takes the task to running with Started; without,
	// Start does that, or another program, for which outputs that go by reference are put into the params, where such programs can read: what
	// plan.CheckWhole refuses fails the task then, and is plan.ErrConflict. The attempt was counted as the task was claimed; that of another program's claim counts up
	// by one now. After that what names the old claim is refused, the instance that claimed it has it no more for Beat, Sweep and Rescue, and
	// Rescue of this one loses it as rules.Lost says. What the instance has already is returned as it has it, and started with Start.
	//
	// It returns plan.ErrConflict, with what it is instead, of a task that is not claimed, not by that node, or that another runner has, as
	// plan.CheckTake says. One that a person cancelled before it was started is taken, and ends as rules.Stopped says: plan.ErrConflict as well.
	// So does, as failed, what another program wrote so that it cannot be run. It returns plan.ErrNotFound of a task that is
	// not there, or whose queue is not, and plan.ErrInstanceGone for an instance that is not registered.
	Take(ctx context.Context, t plan.Take) (plan.ClaimedTask, error)

	// Inputs returns the outputs of the task's parents, in the order of its needs; of an item, what ItemInputs leaves of its foreach
	// task's. What plan.CheckInputs refuses is not read: its error is returned.
	Inputs(ctx context.Context, id plan.TaskID) ([]plan.Input, error)

	// Parents returns how the task's parents ended, in the order of its needs; one that was deleted counts as cancelled, or is left out. An
	// item has none.
	Parents(ctx context.Context, id plan.TaskID) ([]plan.Parent, error)

	// AppendLog adds to a running task's log, or nothing if the entries are the log's last ones: then the same call was made before and
	// its answer lost. It returns plan.ErrClaimLost if the claim is no longer the task's.
	AppendLog(ctx context.Context, c plan.Claim, entries []plan.LogEntry) error

	// Sweep puts right what no turn does: delays that are over queue their tasks; claims of this instance that it does not hold
	// (an answer was lost) are given back; claims of instances that are not registered are lost, as in Rescue; plans that are
	// closed have what is held and queued cancelled (skipped, if a failure closed them), also what is held by a delay, but a foreach
	// task whose items are made ends with the last of these; submissions
	// untouched for an hour are abandoned and their tasks deleted; retries and expansions left half-way are ended; releases that
	// a dead process left are made; what other programs finished is released, where other programs can write. It is idempotent,
	// and any number of instances may sweep at once. Over is told, and plan.ErrInstanceGone returned, like by Turn.
	//
	// A sweep audits the store where plan.AuditDue says so, for all instances. What is to be done follows from the states of tasks and plans. So
	// an audit mends all that a driver keeps beside these: owners, notes of work, counters, gates, marks and places in queues.
	Sweep(ctx context.Context, s plan.Sweep) (plan.Swept, error)

	// Instances returns all registered instances.
	Instances(ctx context.Context) ([]plan.Instance, error)

	// Rescue takes an instance for dead, if its Beats are still those that the caller saw (plan.ErrConflict if not; beats < 0
	// takes any): it is not registered any more, so that all it still does is refused, and its tasks become what rules.Lost says, with what
	// their queues say now (OnLost).
	// It returns how many tasks it took away. An instance that is not registered has none, and is no error.
	Rescue(ctx context.Context, i plan.InstanceID, beats int64) (int, error)

	// Expire is Prune for nodes, which call it all the time: it deletes plans that ended longer ago than their Keep, or, where they have
	// none, than the driver's default, with at most budget documents, and ends deletions that died half-way. A plan that DeletePlan
	// refuses stays, and holds up no other. Where nothing is to be deleted it writes nothing and reads none of the plans whose time is not
	// over; any number of instances may call it at once.
	//
	// Expire also deletes tasks of no plan that ended longer ago than their queue's Keep says, or the driver's default where it says
	// nothing. Their logs, results and items go with them; an item never goes alone. A task stays as long as a task that needs it, or one
	// of its items, is in the store: so that one can be retried. A task also stays that ended by another program, where such can write,
	// and whose end no Sluice node had to note.
	Expire(ctx context.Context, budget int) (plan.Expired, error)

	// Wakes returns a channel on which a value arrives soon after another process queued something, or ended a plan that a node of
	// its own runs (Own), and which is closed when ctx ends; nil if this store cannot tell, in which case polling and beats serve.
	Wakes(ctx context.Context) <-chan struct{}
}

// Admin is what people and programs do to plans and queues.
type Admin interface {
	// CreatePlan inserts the plan as submitting, created now, and returns it with its Run, one more than the highest that
	// its name ever had, plans that were deleted included. Its Size, if it is given, is what Ready asks for. One with its ID, or with its
	// Key, if it has one, that is there already is returned instead, and nothing is inserted. Its File is kept as it is; a large
	// one is what plan.File.CheckFile says. The store deletes it with the plan.
	CreatePlan(ctx context.Context, p plan.Plan) (plan.Plan, error)

	// AddTasks inserts tasks, held. They belong to the plan given, or to none if it is zero, whatever their own field says; their
	// queues must exist, their parents exist already or come before them in tasks, and (in a plan) belong to the same plan, and
	// their names be new in the plan: else plan.ErrNotFound or plan.ErrExists with the name in the message, and nothing is added.
	// But of more than 1,000 tasks some may be in (of a plan that is ready, or of none, the first), and may run if the plan is ready, where
	// somebody else closed the plan, took a name or deleted a parent while they were being added.
	// Tasks of a plan whose deletion has begun are nobody's parents any more.
	// Adding a task again under its id changes nothing; another task under that id is plan.ErrExists, as plan.CheckSame says. While the plan is submitting that is all. Tasks of no plan, and of a plan
	// that is ready, are released at once if their parents have finished. A plan that has ended, or is closed, takes none: ErrPlanEnded.
	// Any number of tasks may be given. A caller that stands still half-way, for minutes, may be taken for dead: then nothing is added, and
	// it gets plan.ErrConflict and may call again.
	AddTasks(ctx context.Context, p plan.PlanID, tasks []plan.Task) error

	// Ready makes a submitting plan ready (state plan.PlanRunning), after which its tasks without needs are released, here and by
	// later turns. Doing it again changes nothing. A plan without tasks ends at once as succeeded. What plan.CheckReady refuses, since
	// not all tasks are in that the plan is submitted with, stays as it is: plan.ErrConflict.
	Ready(ctx context.Context, p plan.PlanID) error

	// CancelPlan closes the plan: nothing more is claimed, what is held or queued is cancelled (by later sweeps if it is much), what
	// runs is marked for its node to stop. A plan that has ended is left as it is: plan.ErrPlanEnded.
	CancelPlan(ctx context.Context, p plan.PlanID) error

	// CancelTask cancels a held or queued task, and marks a claimed or running one for its node to stop. Of a foreach task whose items
	// are made it does so with these, and the task, marked as well, ends with the last of them, as rules.Settle says. One that has
	// finished is left as it is: plan.ErrConflict.
	CancelTask(ctx context.Context, id plan.TaskID) error

	// Retry takes the given tasks of a plan, or of none, back to held with what was known of their last attempts cleared (Attempt
	// starts again at 0, rescues too; the log of one that had been tried gets a plan.RetriedEntry), and then releases those whose parents have finished. Tasks are those that
	// plan.SelectRetry chose; replace holds new Definition, Params and Queue for some of them by id (items have
	// their own: those that are not in it run as they were), and params, unless they are nil, are
	// those of the plan from now on. The items of a foreach task stay;
	// but if it makes them again, as plan.Retried.Remakes says, all of them are
	// deleted with their logs, whether they are given or not, and it makes new ones when its parents have finished. A task that needs one
	// of them waits for the new item with the same index; if there is none, the item counts as plan.MissingItem says. A plan that had
	// ended, or was closed, runs again. It returns plan.ErrConflict if a task is not any more in the state that the caller saw, and
	// plan.ErrPlanActive if one is claimed or running, and either if something below that was not given is queued, claimed or
	// running, or waits for nothing but an instant or its items, as plan.CheckBelow says. An item that is deleted counts as given. So does
	// one that an earlier retry deleted, and that the foreach task may make now. It returns what plan.CheckRetry returns for a plan of which
	// nothing ever ran. A plan whose deletion has begun is plan.ErrNotFound. A driver may make a retry in several writes, and returns after
	// the last one. Nothing of
	// the plan is released or claimed meanwhile, and the plan does not end. If the process dies half-way, a sweep ends the retry: one that
	// was decided is made, any other is undone. Of tasks of no plan it is ErrConflict, too, if one
	// needs a task of a plan whose deletion has begun and not ended; and of any task that replace gives no other queue, if
	// its own is not there any more. Nothing is changed then.
	Retry(ctx context.Context, p plan.PlanID, tasks []plan.Retried, replace []plan.Task, params json.RawMessage) error

	// Adopt marks a plan as run by a node of its own (Own), so that claims limited to it stay O(log n), and is done before such a
	// node runs a plan that was submitted without.
	Adopt(ctx context.Context, p plan.PlanID) error

	// DeletePlan deletes an ended plan with its tasks and logs, in chunks of at most budget documents, and reports whether more is
	// left: call again. A plan that has not ended is plan.ErrPlanActive. So is one as long as a task of no plan that has not finished
	// needs one of its tasks, since its inputs may still be read from there: the error names both. Once that has finished the plan may
	// go, and the finished task keeps its Needs, and its Params with the inputs that were copied into them; of those that it had by
	// reference, Inputs may return null. A deletion that has begun goes on, whoever comes; one that died half-way is ended by Prune.
	DeletePlan(ctx context.Context, p plan.PlanID, budget int) (more bool, err error)

	// Prune deletes, like DeletePlan, plans that ended longer ago than their Keep (or keep, where they have none; keep <= 0: for
	// ever), and gives freed room back to the system. A plan that DeletePlan refuses stays, and holds up no other. It returns how many
	// plans went and whether more is left.
	Prune(ctx context.Context, keep time.Duration, budget int) (plans int, more bool, err error)

	// CreateQueue inserts a queue; ErrExists if the name is taken. EnsureQueue instead returns the one there is.
	CreateQueue(ctx context.Context, q plan.Queue) (plan.Queue, error)
	EnsureQueue(ctx context.Context, q plan.Queue) (plan.Queue, error)

	// SetQueue changes threads (with unlimited), sort, what it says of nodes (Pin, Ignore, NodeThreads), OnLost, Secrets, and Keep of the
	// queue with q's id.
	// What runs already goes on. The next turn of any instance keeps to it; what is lost from then on, to OnLost, whenever it was claimed.
	SetQueue(ctx context.Context, q plan.Queue) error

	// ChangeQueue is SetQueue for who read the queue, as was, and decided by that: one that is set otherwise by now is left alone, with
	// plan.ErrConflict; one that is set as q already, too, without an error. Of many who read the same, one changes it.
	ChangeQueue(ctx context.Context, was, q plan.Queue) error

	// SetMaxThreads limits what all instances of a node have claimed and running together; < 0 takes the limit off. The node need not
	// exist yet. What runs already goes on. The turns of an instance keep to it from when it registers, or beats next, on.
	SetMaxThreads(ctx context.Context, n plan.NodeName, max int) error
}

// Reader is what looks, and changes nothing.
type Reader interface {
	// Plan returns the plan with its Counts.
	Plan(ctx context.Context, id plan.PlanID) (plan.Plan, error)
	// PlanFile returns the file that CreatePlan was given with the plan; the zero one, if there was none.
	PlanFile(ctx context.Context, id plan.PlanID) (plan.File, error)
	// Plans returns plans, newest first, with their Counts: those of one name, if the query gives it, by their Run, others by when they
	// were created. Ids do not tell: two processes mint them, and of the same second in any order.
	Plans(ctx context.Context, q PlanQuery) ([]plan.Plan, error)

	// Task returns everything about a task, its params, needs and output included; an output that is passed by reference is put
	// together. One that plan.CheckOutput refuses is not read: the task is returned without it, beside the error.
	Task(ctx context.Context, id plan.TaskID) (plan.Task, error)
	// Tasks returns tasks in the order that the query asks; without Params and Output unless it asks for them. A running task that said how
	// far it is has its Progress, and so has that of Task.
	Tasks(ctx context.Context, q TaskQuery) ([]plan.Task, error)

	// Queues returns all queues, by name, without Queued and Active, however much is in them. CountQueues fills these in.
	Queues(ctx context.Context) ([]plan.Queue, error)
	CountQueues(ctx context.Context, queues []plan.Queue) error

	// Log returns up to limit entries of a task's log after the cursor, oldest first, and the cursor after them. The zero cursor is
	// the start, each entry raises it by one, or by more, and any number between is a cursor as well: so who has one can look back.
	Log(ctx context.Context, id plan.TaskID, after int64, limit int) ([]plan.LogEntry, int64, error)

	// Changes returns what changed after the cursor, oldest first, and the cursor after it. Every task (and plan) that changed is
	// there at least once, in a state at least as new as that change; states in between may be left out, and some may come twice.
	// The cursor of Latest is the present; what is no cursor of this store is plan.ErrCursor, as is one that is ahead of its present, which a
	// store has that was restored from a backup.
	Changes(ctx context.Context, after Cursor, limit int) ([]Change, Cursor, error)
	Latest(ctx context.Context) (Cursor, error)

	// Now returns the time by the store's clock, of which are all times in it: what is compared with them, or becomes one of them, is
	// counted from there. The clock of who asks may be another host's.
	Now(ctx context.Context) (time.Time, error)

	// MaxThreads returns the limits that SetMaxThreads has set, by node, whether a process of that name is there or not.
	MaxThreads(ctx context.Context) (map[plan.NodeName]int, error)

	// Instances as for Node.
	Instances(ctx context.Context) ([]plan.Instance, error)
}

// Store is all of it.
type Store interface {
	Node
	Admin
	Reader
	// Close lets go of the store. Nothing else may be called after.
	Close() error
}

// Reporter is what a store may offer beside: a place for the documents that tasks report. storetest.Reports tests it.
type Reporter interface {
	// Report keeps a JSON object under the id. One whose id is there already changes nothing. What is no object, or cannot be kept, is an
	// error that is not plan.ErrUnavailable.
	Report(ctx context.Context, id plan.ID, document json.RawMessage) error
}

// Balance is what a store may offer beside: the document of QueueBalance, that one instance at a time works by it, and what that one writes.
// storetest.Balances tests it.
type Balance interface {
	// HoldBalance makes the instance the one that balances, if nobody is, or who was is not registered any more, and reports whether it
	// is the one. So the role is kept by an instance's beats, and free when the instance was rescued or has left. It returns
	// plan.ErrInstanceGone for an instance that is not registered.
	HoldBalance(ctx context.Context, i plan.InstanceID) (held bool, err error)

	// Balance returns the document, nil if there is none. One that plan.ParseBalance need not look at is a plan.ErrBalance: where another
	// program made two, or what has no JSON.
	Balance(ctx context.Context) (json.RawMessage, error)

	// SetThreads limits the queue, which was read as was, to so many threads, and changes nothing else of it. A queue whose Threads or
	// Unlimited are others by now is left alone, with plan.ErrConflict; one that has these threads already, too, without an error. What
	// runs already goes on. The next turn of any instance keeps to it.
	SetThreads(ctx context.Context, was plan.Queue, threads int) error

	// SetBalance sets some keys of the document, those of a JSON object, and leaves the others as they are; it makes the document if there is
	// none. What the keys say is not looked at. What is no object is a plan.ErrBalance.
	SetBalance(ctx context.Context, settings json.RawMessage) error
}

// Results is what a store may offer beside: a place for the whole of what tasks printed, which programs read that speak Disbatch, while a log
// is for people and bounded. storetest.Results tests it.
type Results interface {
	// PutResults keeps what an attempt printed, of plan.Stdout and plan.Stderr, each from its first byte whatever was read of it; nil is null.
	// It is for what is too large to go with the attempt's ending (Printed), and is called before that, so that nobody sees an end without it. What was there is replaced, also if the same call was
	// made before. It returns plan.ErrClaimLost if the claim is no longer the task's; then nothing of it stays. Bytes that are not UTF-8 may
	// come back as U+FFFD. Mode counts where the database has several places for it.
	PutResults(ctx context.Context, c plan.Claim, stdout, stderr *io.SectionReader, mode plan.GFS) error

	// OpenResult opens what a task printed on plan.Stdout or plan.Stderr, whoever ran it, and says how many bytes that is, as far as its
	// writer said so; null has -1 of them, and reads as nothing. What is replaced or deleted meanwhile ends with an error, never early. The
	// context is that of reading, too. Who deletes or retries a task takes its results along.
	OpenResult(ctx context.Context, id plan.TaskID, s plan.Stream) (io.ReadCloser, int64, error)
}

// Fitter is what a store offers beside that does not keep plans and tasks of any size.
type Fitter interface {
	// Fits returns an error, a plan.ErrTooLarge, that names what of a plan, or of tasks of none, would not fit. It writes nothing.
	Fits(ctx context.Context, p plan.Plan, tasks []plan.Task) error
}

// Refuser is what a store offers beside into which other programs write, too.
type Refuser interface {
	// Refused names what they wrote that no node can serve: a sentence for each queue, with the reason and the remedy.
	Refused(ctx context.Context) ([]string, error)
}

// Batcher is what a store offers beside that takes the tasks of a submission best so many at once.
type Batcher interface {
	// SubmitBatch returns how many tasks AddTasks is best handed at once for a plan that is being submitted; 0: it is all the same.
	SubmitBatch() int
}

// FitsAlways is how many bytes the params of a plan, or a task's with its description and list, have that fit into every store: nobody needs to
// ask a Fitter. As a document JSON has up to 7 times its bytes (a list of digits), and what a document does not hold exactly MongoDB keeps as
// text as well.
const FitsAlways = 1 << 20

// Size returns what of a task counts against FitsAlways.
func Size(t *plan.Task) int {
	size := len(t.Params) + len(t.Description)
	if t.Foreach != nil {
		size += len(t.Foreach.List)
	}
	return size
}

// Waiter is what a store may offer beside to which the way is long: to wait there for what changes, instead of asking all the time.
type Waiter interface {
	// WaitChanges is Changes for what changed of one plan. Where there is nothing yet it waits for the first, up to so long. The cursor goes on
	// over what changed elsewhere, so that a short answer does not mean that there is no more.
	WaitChanges(ctx context.Context, p plan.PlanID, after Cursor, limit int, wait time.Duration) ([]Change, Cursor, error)
}

// PlanQuery selects plans; empty fields select all.
type PlanQuery struct {
	Name   string
	Run    int             // with Name
	Prefix string          // of the id's 24 digits
	Source string          // absolute path of the file
	State  *plan.Lifecycle //
	Before plan.PlanID     // after this one, in the order of Plans
	Limit  int             // 0: 100

	NoCounts bool // their counts may be left out: a store that has to count for them does not
	NoParams bool // their params are left out: who looks through many plans does not read a MiB of each
}

// TaskQuery selects tasks; empty fields select all.
type TaskQuery struct {
	Plan     plan.PlanID
	NoPlan   bool // tasks of no plan
	Name     string
	Prefix   string // of the id's 24 digits
	Queue    plan.QueueID
	Statuses []plan.Status // plan.Failed stands for every code above 1; another code for itself
	Of       plan.TaskID   // items of this foreach task, by index
	Parent   plan.TaskID   // with Plan: those that need this task
	NoItems  bool          // no items of foreach tasks
	Retried  bool          // only tasks that were tried more than once
	Troubled bool          // only tasks of which plan.Troubled says so
	IDs      []plan.TaskID
	After    plan.TaskID // in the order asked for
	Newest   bool        // newest first; else oldest first
	Reached  bool        // only running tasks that said how far they are: costs what these do
	Needs    bool        // fill Needs
	Params   bool        // fill Params
	Output   bool        // fill Output, where it is kept with the task
	Brief    bool        // all that is wanted beside is ID, Plan, Of, Index, Name, Status, Reason, Started, Ended, and with Needs When and ContinueOnError; others may be zero
	Limit    int         // 0: 100
}

// A Cursor is a place in a store's feed of changes; what it holds is the driver's.
type Cursor string

// A Change is one thing that changed: a task, or, without one, a plan.
type Change struct {
	At      time.Time
	Plan    plan.PlanID
	Task    plan.TaskID
	Name    string
	Of      plan.TaskID
	Status  plan.Status // of the task
	Reason  plan.Reason
	Allowed bool // it went wrong, and its plan allows that
	Attempt int
	Node    plan.NodeName
	State   plan.Lifecycle // of the plan, where there is no task
	Detail  string
	Output  json.RawMessage // where the driver has it at hand; may be nil
}

// A Hook stands at a driver's edge for tests that kill it: it is called before each write that the driver makes, and again when
// that write was made, and an error of its ends the driver's work at that point as if the process had died there (before: the write
// was not made; after: it was, and its answer is lost). A driver that makes several writes side by side calls it side by side.
type Hook func(written bool) error
