// Package store is the written contract of a store. A store keeps plans, tasks, queues and
// instances, and is the only place where processes meet. The package has interfaces with their
// sentences, and no code. storetest tests each sentence. The drivers memory, sqlite and mongodb
// satisfy them.
//
// # Rules for every method
//
// A store decides nothing: packages plan and rules decide. Any number of goroutines and processes
// may call every method at once. After [plan.ErrUnavailable], and after an error that is none of
// plan's sentinels, the write may or may not have been made. The caller may then repeat any call:
// it does nothing twice. Bad input changes nothing.
//
// The invariants hold whatever process dies at whatever instant:
//
//  1. No queued, claimed or running task has a parent that has not finished, or a plan that is not ready.
//  2. A task leaves held once per attempt, by one conditional write.
//  3. Every finished parent is released in the end, even if a process dies between the two steps.
//  4. When a task is claimed, its params hold its parents' outputs, or it is marked ByReference and Inputs gives them.
//  5. Every write about an attempt names its claim, and a claim that is lost changes nothing any more.
//  6. A queue never has more claimed and running tasks than its threads, nor on one node more than
//     its NodeThreads. All instances of a node together never have more than its limit.
//  7. Finishing costs O(children), claiming O(log n) a task; one turn changes at most its budget of documents.
//
// JSON keeps its value, every digit of its numbers included, but not its spelling.
//
// Times are of the store's clock. A driver is opened with the clock that it uses, or reads its
// server's. A driver that uses the clock of the machine notices when somebody sets that clock, as
// far as the system tells. Waiting goes by the time that passed: a delay lasts as long as before,
// and no submission is abandoned and no plan deleted early. Instants that people see are those of
// the clock.
package store

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// Node is the part of a store for an execution node.
type Node interface {
	// Register makes the instance known, with Beats 0. The caller chooses its ID. Registering twice
	// changes nothing. An instance that was rescued stays gone, as its next Beat or Turn says. An
	// instance that has left returns under another ID. The store registers at most one Sole
	// instance for each node name. Another one gets plan.ErrNameTaken until the first was rescued
	// or has left, even if the first is silent.
	Register(ctx context.Context, i plan.Instance) error

	// Beat adds one to the instance's Beats and returns the store's news for it; the news of its
	// Plan is that of Turn. Due is how long it is until the first schedule is due, if the store is a
	// Schedules. Plugins and Pauses, unless they are nil, are the instance's from now on.
	// Readers of Instances see them; the instance's turns say what it may claim. Beat returns
	// plan.ErrInstanceGone once the instance was rescued, has left, or was never registered.
	//
	// Progress, unless it is nil, is kept with the instance and replaces earlier reports. It
	// changes no task and no feed. Task and Tasks show a report of a running task if it names the
	// task's present claim. So no other attempt shows it, however late the heartbeat comes.
	Beat(ctx context.Context, b protocol.Beat) (protocol.Beaten, error)

	// Leave ends an instance that holds nothing any more. If it still holds tasks, Leave rescues
	// them as Rescue does.
	Leave(ctx context.Context, i plan.InstanceID) error

	// Turn applies the endings, releases children, ends delays and claims, in this order, and
	// returns the tasks that it claimed. A driver may claim concurrently with the other steps. The
	// turn must end many tasks, no limit may apply, and more tasks must be queued than the caller
	// asked for. Tasks that this turn queues, and plans that it closes, then count from the next
	// claim on.
	//
	// Endings. An ending is refused if its claim (task, attempt and token) is not the task's
	// present claim. A refused ending changes nothing, and its task is in Lost. The others are
	// applied, each in one write with its output; stores with transactions apply all or none.
	// Package rules says what an ending makes of its task (rules.Ended): the step. If a person
	// cancelled the task, the step does not queue or hold it. If the plan of the task is closed, the
	// task ends as rules.Halted says; without transactions this may come in a later write. An ending
	// with a Delay leaves Started as it is. Printed replaces the earlier output, in the same write,
	// as PutResults would. Log entries are appended. A failure closes the plan if rules.StopsPlan
	// says so. If several tasks are released together, those after the first such failure, by their
	// ids, are not started. None of them was queued, so that their Params stay without inputs.
	//
	// Exit is the exit status of the last attempt that ended. A task keeps it when it is skipped,
	// cancelled or given back afterwards. Detail and Reason tell why a task is in its state. A task
	// that is queued again after a loss has plan.ReasonLost, and so has its next claim. Cancel ends
	// with the task. An attempt may end as skipped (plan.Skip); its task keeps the exit status and the
	// detail of the attempt. Any other cancelled task was not run. A cancelled task has no node. NotBefore stays while the task
	// is held, and ends when the task is queued or makes its items. Params hold the parents'
	// outputs from the first time that the task is queued. A foreach task without items is Expanded
	// as well. If it ends before all of its items are made, Items counts those that are made.
	//
	// Release. Each held child of a finished parent is treated as rules.Decide says. It is queued
	// with the params of rules.Deliver, or marked ByReference if rules.Copied says so. A foreach
	// task is expanded into items. If that is impossible, the task fails with plan.ReasonInput; a
	// list in an output that rules.CheckInputs refuses is not read. A child may also be cancelled
	// with plan.ReasonSkipped, which releases its own children in turn. When the last item of a
	// foreach task has finished, the task ends as rules.Settle says. Its output is the list of its
	// items' outputs. A task with Foreach.Each makes its items once those of the tasks that it names
	// are in. Such an item needs the items with its index of these tasks, and what else its foreach
	// task needs, and is released as a task with parents is. When no task of a plan is unfinished, the plan ends as rules.Verdict says.
	// Tasks of finally are held until all others of their plan have ended. One conditional write then notes
	// that verdict as the plan's Ending, opens the plan if it was closed, and lets these tasks go.
	// Work beyond the budget waits for the next turn of any instance, and More says so. Children of
	// the tasks that ended first are released first.
	//
	// Delays. Held tasks whose delay is over are queued, as far as the driver knows them, with up
	// to half of the budget. This turn may claim them. Sweeps find the others.
	//
	// Claims. Up to Slots tasks are claimed. They are queued, of queues that the turn serves
	// (protocol.Turn.Serves), of Plan if it is given, and of no closed plan. The limits are each
	// queue's threads, its NodeThreads of the instance's node, the limit of that node
	// (SetMaxThreads), and over all nodes the Rates of the queue, of its group, and of the parent of
	// that. Nothing is claimed while one of these groups is paused. For a rate a driver keeps one
	// instant, which rules.RateSpend moves with each claim, and which a claim that is lost may have
	// moved too. Rest is how long rates hold up tasks that wait. A queue without a free thread or without work costs nothing, and neither
	// does a limit that is not set. A queue that is not served costs at most one look, whatever
	// waits in it. Within a queue the order is the queue's sort. Queues with work take turns, so
	// that none starves. A claim adds one to the attempt, and sets a new token, the instance and
	// its node. It sets Started if Start, and clears it otherwise. The answer has higher ranks
	// first, then older tasks, whatever the order of their queues is.
	//
	// End. If the turn has a Plan, the answer tells whether that plan has ended (Over), whoever
	// ended it and however long ago. So its node learns of the end even if others ended the plan,
	// or an answer was lost. A deleted plan is over as well. A plan is not over if the turn claimed
	// one of its tasks.
	//
	// Turn returns plan.ErrInstanceGone, and does nothing at all, for an instance that is not
	// registered.
	Turn(ctx context.Context, t protocol.Turn) (protocol.Turned, error)

	// Start takes claimed tasks to running. It returns the tasks whose claim was lost. After a turn
	// with Start it is not needed.
	Start(ctx context.Context, claims []protocol.Claim) (lost []plan.TaskID, err error)

	// Take moves a claimed task to this instance, a runner, which runs it, and returns the task as
	// a turn's Claimed would. The present owner is the instance that claimed it, or another
	// program, if other programs can write. The task's node must be the instance's and stays, so
	// that limits continue to count the task. One conditional write sets a new token and the
	// instance, and with Start takes the task to running with Started.
	//
	// Without Start, a later call of Start does that, or another program does. For another program,
	// outputs by reference are copied into the params, if such programs can read them. If
	// rules.CheckWhole refuses these params, the task fails, and Take returns plan.ErrConflict. The
	// attempt was counted at the claim; the claim of another program is counted now.
	//
	// Afterwards the store refuses writes that name the old claim. The instance that claimed the
	// task no longer has it for Beat, Sweep and Rescue. A Rescue of this instance loses the task as
	// rules.Lost says. If the instance has the task already, Take returns it as it is, started with
	// Start.
	//
	// Take returns plan.ErrConflict, with the task's state, for a task that rules.CheckTake
	// refuses. The node has not claimed such a task, or another runner holds it. If a person
	// cancelled the task before its start, Take ends it as rules.Stopped says, and returns
	// plan.ErrConflict. If another program wrote the task so that it cannot run, Take ends it as
	// failed, and returns plan.ErrConflict. Take returns plan.ErrNotFound if the task or its queue
	// does not exist, and plan.ErrInstanceGone for an instance that is not registered.
	Take(ctx context.Context, t protocol.Take) (protocol.ClaimedTask, error)

	// Inputs returns the outputs of the task's parents, in the order of its needs, each by the name of
	// rules.InputName. For an item without parents it
	// returns those of its foreach task, as ItemInputs leaves them. It does not read outputs that
	// rules.CheckInputs refuses, and returns that error.
	Inputs(ctx context.Context, id plan.TaskID) ([]plan.Input, error)

	// Parents returns how the task's parents ended, in the order of its needs. An item has none, except
	// by Foreach.Each.
	Parents(ctx context.Context, id plan.TaskID) ([]plan.Parent, error)

	// Failures returns how those tasks failed that the task is told of (rules.TellsFailures): a JSON list of
	// plan.Failure, as rules.Failures makes it. The parents of the task come in the order of their ids, and in
	// place of a foreach task that has items come those of its items that failed, by index. Secrets are hidden.
	// Package failed reads it for all drivers.
	Failures(ctx context.Context, id plan.TaskID) (json.RawMessage, error)

	// AppendLog adds entries to a running task's log. It adds nothing if the entries are the log's
	// last ones: then the same call was made before and its answer lost. It returns
	// plan.ErrClaimLost if the claim is no longer the task's.
	AppendLog(ctx context.Context, c protocol.Claim, entries []plan.LogEntry) error

	// Sweep does the work that no turn does.
	//
	// It queues tasks whose delay is over. It gives back claims of this instance that the instance
	// does not hold, because an answer was lost. Claims of instances that are not registered are
	// lost, as in Rescue. In closed plans it ends held and queued tasks, delayed ones too, as
	// rules.Halted says. A foreach task whose items are made ends with the last of these. A plan that has
	// run longer than its Timeout is closed (plan.ClosedByTimeout), as rules.TimesOut says, and its running
	// tasks are marked as by CancelPlan. Pending tells the instance when to sweep for that. The sweep
	// abandons submissions that nobody touched for an hour, and deletes their tasks. It completes
	// retries, expansions and releases that a dead process left half-way. It releases tasks that
	// other programs finished, if other programs can write.
	//
	// Sweep is idempotent, and any number of instances may sweep at once. It sets Over and returns
	// plan.ErrInstanceGone as Turn does.
	//
	// A sweep audits the store for all instances if rules.AuditDue says so. The remaining work
	// follows from the states of tasks and plans. So an audit repairs everything that a driver
	// keeps besides these: owners, notes of work, counters, gates, marks and places in queues. A
	// driver with transactions, which no process can leave half-written, has nothing to audit.
	Sweep(ctx context.Context, s protocol.Sweep) (protocol.Swept, error)

	// Instances returns all registered instances.
	Instances(ctx context.Context) ([]plan.Instance, error)

	// Rescue declares an instance dead if its Beats are still those that the caller saw. Otherwise
	// it returns plan.ErrConflict; beats < 0 accepts any. The instance is no longer registered, so
	// that the store refuses its writes. Its tasks become what rules.Lost says, with the present
	// OnLost of their queues. A loss of a running task adds one to its Rescues. So the attempt does
	// not count for Retry (rules.Tried), and neither does a claim that never ran. Rescue returns how many tasks it took away. An instance that is not
	// registered has none, and is no error.
	Rescue(ctx context.Context, i plan.InstanceID, beats int64) (int, error)

	// Expire is Prune for nodes, which call it all the time. It deletes plans that ended longer ago
	// than their Keep, or, without one, than the driver's default. It deletes at most budget
	// documents, and completes deletions that stopped half-way. A plan that DeletePlan refuses
	// stays, and does not hold up others. If nothing is expired, Expire writes nothing and reads no
	// plan that stays. Any number of instances may call it at once.
	//
	// Expire also deletes tasks of no plan that ended longer ago than their queue's Keep says, or,
	// without one, than the driver's default. Their logs and results go with them. A task stays while
	// a task in the store needs it, so that the child can be retried. A task also stays if another
	// program ended it and no Sluice node had to note its end. So does a task that rules.ReceiverOf has
	// handed over (Roller).
	Expire(ctx context.Context, budget int) (protocol.Expired, error)

	// Wakes returns a channel on which a value arrives soon after another process queued tasks. A
	// value also arrives after another process ended a plan that a node of its own runs (Own). The
	// channel is closed when ctx ends. Wakes returns nil if the store cannot tell; polling and
	// heartbeats serve then.
	Wakes(ctx context.Context) <-chan struct{}
}

// Admin is the part of a store for people and programs that change plans and queues.
type Admin interface {
	// CreatePlan inserts the plan as submitting, created now, and returns it with its Run. Run is
	// one more than the highest that its name ever had, deleted plans included. Ready checks its
	// Size, if it is given. If a plan with its ID exists, or with its Key, if it has one,
	// CreatePlan returns that plan and inserts nothing. Else rules.CheckOverlap is asked about
	// another run of its name that has not ended, in the write that inserts the plan: of two that
	// may not overlap one is inserted. The store keeps its File as it is, and
	// deletes it with the plan; rules.CheckFile refuses a large one.
	CreatePlan(ctx context.Context, p plan.Plan) (plan.Plan, error)

	// AddTasks inserts tasks, held. They belong to the given plan, or to none if it is zero,
	// whatever their own field says. Their queues must exist. Their parents must exist or come
	// before them in tasks, as rules.CheckNeed says. Their names must be new in the plan. Otherwise
	// AddTasks returns plan.ErrNotFound or plan.ErrExists with the name in the message, and adds
	// nothing. rules.CheckAdded refuses a foreach of no plan, and tasks of finally of a plan that was
	// created without Finally, or is ready.
	//
	// Adding a task again under its id changes nothing. Another task under that id is
	// plan.ErrExists, as secret.CheckSame says. rules.CheckTakesTasks refuses a plan that has ended, or is
	// closed, or runs its tasks of finally.
	//
	// While the plan is submitting, that is all: no task is released or skipped before Ready, even
	// if a person cancels its parents. Tasks of a ready plan, and of no plan, are released at once
	// if their parents have finished. A task without params has an empty object.
	//
	// Any number of tasks may be given. There is one exception to all or nothing, for more than
	// 1,000 tasks. If somebody else meanwhile closes the plan, takes a name or deletes a parent,
	// some tasks may be in. If the plan is ready or there is none, these are the first tasks. They
	// may run if the plan is ready. A caller that stands still half-way, for minutes, may be
	// declared dead. Then nothing is added, and it gets plan.ErrConflict and may call again.
	AddTasks(ctx context.Context, p plan.PlanID, tasks []plan.Task) error

	// Ready makes a submitting plan ready (state plan.PlanRunning). Its tasks without needs are
	// then released, here and by later turns. rules.Begin sets its Deadline. A second call changes nothing. A plan without tasks
	// ends at once as succeeded. Ready returns plan.ErrConflict and changes nothing if
	// rules.CheckReady refuses, because not all tasks of the submission are in.
	Ready(ctx context.Context, p plan.PlanID) error

	// CancelPlan closes the plan. No more of its tasks are claimed. Held and queued tasks end as
	// rules.Halted says, by later calls and sweeps if they are many. Running tasks are marked for
	// their node to stop. A second call only continues what is left. A plan that has ended does not
	// change: plan.ErrPlanEnded. Tasks of finally run after the others all the same. A call that is to
	// stop these too says that its caller saw them run (finally). Any other call changes nothing while
	// they run, so that a cancellation which comes late or twice does not stop them.
	CancelPlan(ctx context.Context, p plan.PlanID, finally bool) error

	// CancelTask ends a held or queued task as rules.Halted says, and marks a claimed or running one
	// for its node to stop. If the items of a foreach task are made, it does so with these. The
	// foreach task is marked as well, and ends with the last item, as rules.Settle says. A task that
	// ran closes its plan by this end if rules.StopsPlan says so. A task that is marked already does
	// not change. Neither does a finished task, nor a task of finally that the plan holds: plan.ErrConflict.
	CancelTask(ctx context.Context, id plan.TaskID) error

	// AnswerTask ends a held task that waits for an approval, as rules.Answered says, and releases its
	// children. A task that does not wait for one, or that was asked again since, does not change:
	// plan.ErrConflict. So of several answers, a cancellation and the end of the wait, one wins.
	AnswerTask(ctx context.Context, id plan.TaskID, a rules.Answer) error

	// SetTask changes a held or queued task of no plan as rules.SetTask says, by one conditional write.
	// If a node claims the task at the same instant, either the claim has the change whole, or the
	// task does not change: plan.ErrConflict. A queued task that gets an instant to come is held until
	// then, and its Params keep the parents' outputs. A held task whose instant is taken away is queued,
	// if its parents let it run. Repeating the change while the task waits is no error.
	SetTask(ctx context.Context, id plan.TaskID, c rules.TaskChange) error

	// Retry takes tasks of a plan, or of none, back to held, and then releases those whose parents
	// have finished, in the order in which they were added: if one of them ends and closes the
	// plan, those after it end as the closed plan says. Retry decides which tasks these are, by
	// rules.SelectRetry of all tasks of the plan, and returns them. Without a plan it chooses among
	// the tasks that the caller names.
	//
	// The facts of the last attempts of these tasks are cleared, Attempt and Rescues start again at
	// 0, and the log of a task that had been tried gets a rules.RetriedEntry. A task of Replace
	// gets its new Definition, Params and Queue. Items have their own: items that are not in
	// Replace run as they were. A plan that had ended, or was closed, runs again.
	//
	// The items of a foreach task stay, unless it makes them again, as rules.Remakes says. Then all
	// of them are deleted with their logs, whether they are chosen or not, and it makes new ones
	// when its parents have finished.
	//
	// Retry refuses the following, and changes nothing then. rules.CheckRetry has the error for a
	// plan of which no task ever ran, or whose tasks of finally run, and rules.CheckOverlap the one for a plan that had ended, as in
	// CreatePlan. A plan whose deletion has begun is plan.ErrNotFound, and so
	// is no named task of no plan. rules.SelectRetry has the errors of the choice.
	// rules.CheckRetried is asked about each task that it chose. A task of Replace that is not
	// chosen is plan.ErrConflict: the plan changed since the caller read it, and a change is made
	// whole or not at all. A task that failed since then is chosen too, and runs as it was. Then
	// rules.CheckBelow is asked of the tasks below that are not chosen and are queued, claimed or
	// running, or wait only for an instant or their items. A deleted item counts as chosen.
	//
	// A driver may make a retry in several writes, and returns after the last one. Nothing of the
	// plan is released or claimed meanwhile, and the plan does not end. A driver without
	// transactions returns plan.ErrConflict if a chosen task changes before the retry is decided.
	// If the process dies half-way, a sweep finishes the retry: a decided one is made, and any
	// other is undone. Edits and Modified of the plan may tell of a retry that was refused after
	// the driver noted it.
	Retry(ctx context.Context, p plan.PlanID, ask rules.Ask) ([]rules.Retried, error)

	// Adopt marks a plan as run by a node of its own (Own). A process calls it before such a node
	// runs a plan that was submitted without the mark. A second call changes nothing.
	Adopt(ctx context.Context, p plan.PlanID) error

	// SetPriority sets the priority of a plan, from 1 to plan.MaxPriority. Claims keep to it from
	// then on.
	SetPriority(ctx context.Context, p plan.PlanID, priority int) error

	// DeletePlan deletes an ended plan with its tasks and logs, in chunks of at most budget
	// documents, and reports whether more remains: call again. A plan that has not ended is
	// plan.ErrPlanActive. Any caller continues a deletion that has begun, and Prune completes one
	// that stopped half-way.
	DeletePlan(ctx context.Context, p plan.PlanID, budget int) (more bool, err error)

	// Prune deletes, like DeletePlan, plans that ended longer ago than their Keep, or, without one,
	// than keep (keep <= 0: for ever). It gives freed room back to the system. A plan that
	// DeletePlan refuses stays, and does not hold up others. Prune returns how many plans it
	// deleted and whether more remains.
	Prune(ctx context.Context, keep time.Duration, budget int) (plans int, more bool, err error)

	// CreateQueue inserts a queue, and returns plan.ErrExists if the name is taken. EnsureQueue
	// instead returns the existing queue, without Queued and Active. An unlimited queue has no
	// Threads, whatever q says.
	CreateQueue(ctx context.Context, q plan.Queue) (plan.Queue, error)
	EnsureQueue(ctx context.Context, q plan.Queue) (plan.Queue, error)

	// SetQueue changes threads (with unlimited), sort, the settings of nodes (Pin, Ignore,
	// NodeThreads), OnLost, Secrets, and Keep of the queue with q's id. Running tasks continue. The
	// next turn of any instance applies the settings. OnLost applies to tasks that are lost from
	// then on, whenever they were claimed.
	SetQueue(ctx context.Context, q plan.Queue) error

	// ChangeQueue is SetQueue for a caller that read the queue as was and decided by that. If the
	// queue has other settings by now, it does not change: plan.ErrConflict. If it has those of q
	// already, there is no error. If many callers read the same queue, one of them changes it.
	ChangeQueue(ctx context.Context, was, q plan.Queue) error

	// PutGroup makes a group, or changes one that the caller read as was, as rules.SetGroup decides; a
	// zero was means that there is none yet. DeleteGroup deletes a group that the caller read as was,
	// unless rules.CheckDeleteGroup refuses. The writes of queues ask rules.CheckInGroup. The store makes
	// at most one of two concurrent writes that rules refuse together. A writer that dies may leave a
	// queue or a group in a group that is not there: it counts as one without a group, and an audit
	// takes it out.
	PutGroup(ctx context.Context, was, g plan.Group) error
	DeleteGroup(ctx context.Context, was plan.Group) error

	// SetMaxThreads limits how many claimed and running tasks all instances of a node have
	// together; < 0 removes the limit. The node need not exist yet. Running tasks continue. The
	// turns of an instance apply the limit once the instance registers, or beats next.
	SetMaxThreads(ctx context.Context, n plan.NodeName, max int) error
}

// Reader is the part of a store that reads, and changes nothing.
type Reader interface {
	// Plan returns the plan with its Counts.
	Plan(ctx context.Context, id plan.PlanID) (plan.Plan, error)
	// PlanFile returns the file that CreatePlan was given with the plan, or the zero one.
	PlanFile(ctx context.Context, id plan.PlanID) (plan.File, error)
	// Plans returns plans, newest first, with their Counts. If the query gives a name, the order is
	// by Run, else by creation. Ids do not give the order: two processes make them, and ids of the
	// same second are in any order.
	Plans(ctx context.Context, q PlanQuery) ([]plan.Plan, error)

	// Task returns everything about a task, its params, needs and output included. An output by
	// reference is put together. If rules.CheckOutput refuses the output, it is not read: Task
	// returns the task without it, and the error.
	Task(ctx context.Context, id plan.TaskID) (plan.Task, error)
	// Tasks returns tasks in the order of the query, without Params and Output unless the query
	// asks for them. Like Task, it returns the Progress that a running task reported.
	Tasks(ctx context.Context, q TaskQuery) ([]plan.Task, error)

	// Queues returns all queues, by name, without Queued and Active, whatever their size.
	// CountQueues fills these in.
	Queues(ctx context.Context) ([]plan.Queue, error)
	CountQueues(ctx context.Context, queues []plan.Queue) error

	// Groups returns all groups, by name.
	Groups(ctx context.Context) ([]plan.Group, error)

	// Log returns up to limit entries of a task's log after the cursor, oldest first, and the
	// cursor after them. The zero cursor is the start. Each entry raises the cursor by one, or by
	// more, and any number between is a cursor as well. So a caller with a cursor can look back.
	Log(ctx context.Context, id plan.TaskID, after int64, limit int) ([]plan.LogEntry, int64, error)

	// Changes returns the changes after the cursor, oldest first, and the cursor after them. Every
	// task (and plan) that changed is there at least once, in a state at least as new as its
	// change. States in between may be left out, and some may come twice. A store may forget
	// changes that are older than an hour. The cursor of Latest is the present. An invalid cursor
	// is plan.ErrCursor. So is a cursor ahead of the present, which a restored backup can bring
	// about.
	Changes(ctx context.Context, after Cursor, limit int) ([]Change, Cursor, error)
	Latest(ctx context.Context) (Cursor, error)

	// Now returns the time by the store's clock. All times in the store are of this clock. Callers
	// compare with it, and compute new times from it, because their own clock may be another
	// host's.
	Now(ctx context.Context) (time.Time, error)

	// MaxThreads returns the limits of SetMaxThreads, by node, also of nodes without a process.
	MaxThreads(ctx context.Context) (map[plan.NodeName]int, error)

	// Instances as for Node.
	Instances(ctx context.Context) ([]plan.Instance, error)
}

// Store is the whole contract.
type Store interface {
	Node
	Admin
	Reader
	// Close closes the store. Nothing else may be called after it.
	Close() error
}

// Reporter is an optional part of a store: a place for the documents that tasks report.
// storetest.Reports tests it.
type Reporter interface {
	// Report keeps a JSON object under the id. If the id exists already, it changes nothing. A
	// document that is no object, or cannot be kept, is an error other than plan.ErrUnavailable.
	Report(ctx context.Context, id plan.ID, document json.RawMessage) error
}

// Checker is an optional part of a store: what its driver keeps besides tasks, plans and queues.
type Checker interface {
	// Check reads the bookkeeping of the driver, and returns what does not follow from the tasks and
	// plans, each fault as a sentence that names the task. It changes nothing. exact says that the
	// reads are of one instant. "sluice store check" and the suite ask for it.
	Check(ctx context.Context) (faults []string, exact bool, err error)
}

// Roles is an optional part of a store: work that one instance of all does. storetest.Balances tests
// it.
type Roles interface {
	// Hold gives the instance the role if nobody has it, or if its holder is not registered any
	// more. It reports whether the instance has the role. So an instance keeps a role by its
	// heartbeats, and the role is free when the instance was rescued or has left. Hold returns
	// plan.ErrInstanceGone for an instance that is not registered.
	Hold(ctx context.Context, role protocol.Role, i plan.InstanceID) (held bool, err error)
}

// A Batch is finished tasks of no plan of one queue that are handed over together.
type Batch struct {
	ID    plan.ID
	Queue plan.QueueID
	Tasks []plan.TaskID
}

// Roller is an optional part of a store: it remembers which finished tasks of no plan are being handed
// over. storetest tests it with Expire.
type Roller interface {
	Roles

	// ToRoll returns up to limit tasks of no plan of a queue that Expire would delete by these limits,
	// which are for each status how long tasks are kept, and that are in no batch. Tasks
	// with the same status come in the order of their ends. They have ID, Status and Ended.
	ToRoll(ctx context.Context, q plan.QueueID, limits map[plan.Status]time.Duration, limit int) ([]plan.Task, error)

	// BeginBatch writes the batch into these tasks of the queue, and returns those that it is in then. A
	// task that is not as ToRoll returned it stays out. No retry takes a task of a batch
	// (rules.BusyRoll), AddTasks does not find it as a parent, and Expire leaves it.
	BeginBatch(ctx context.Context, id plan.ID, q plan.QueueID, tasks []plan.Task) ([]plan.TaskID, error)

	// Batches returns the batches that have begun and not ended, the oldest first. It first completes
	// the calls of dead processes, so that the tasks of a batch which it has returned never change.
	Batches(ctx context.Context) ([]Batch, error)

	// Logs returns the whole logs of tasks, as Log does. A task that is not there has none.
	Logs(ctx context.Context, tasks []plan.TaskID) (map[plan.TaskID][]plan.LogEntry, error)

	// EndBatch deletes the tasks of a batch that was received. Otherwise it takes the batch out of them,
	// and they are as before. A batch that is not there is no error.
	EndBatch(ctx context.Context, id plan.ID, received bool) error
}

// Schedules is an optional part of a store: it keeps schedules, and knows nothing of timetables.
// storetest.Schedules tests it.
type Schedules interface {
	Roles

	// PutSchedules writes each schedule, apart from the others, and returns an error for each: nil
	// if it was written. A schedule with Revision 0 is new; a name that is taken is plan.ErrExists.
	// Any other one replaces the schedule with its ID, if that has its Revision: otherwise it is
	// plan.ErrConflict, or plan.ErrNotFound. The Revision is then one more. A schedule that the
	// store has as it would be written is no error. An empty text of a plan file leaves the text
	// as it is. The name never changes.
	PutSchedules(ctx context.Context, schedules []plan.Schedule) ([]error, error)

	// Schedules returns schedules by name, or by Due if the query asks for those that are due.
	Schedules(ctx context.Context, q ScheduleQuery) ([]plan.Schedule, error)

	// DeleteSchedule deletes the schedule, and nothing that it started. A missing one is
	// plan.ErrNotFound.
	DeleteSchedule(ctx context.Context, id plan.ScheduleID) error
}

// Starter is an optional part of a store with transactions that keeps schedules.
// storetest.Schedules tests it.
type Starter interface {
	// StartTasks is PutSchedules, and AddTasks of tasks of no plan, in one transaction. tasks are
	// those of each schedule; those of one that is not written are not added. If AddTasks refuses
	// one, nothing is written.
	StartTasks(ctx context.Context, schedules []plan.Schedule, tasks [][]plan.Task) ([]error, error)
}

// ScheduleQuery selects schedules; empty fields select all.
type ScheduleQuery struct {
	Name  string
	Due   time.Time // only those whose Due is not after it, the earliest first
	After string    // by name: after this one
	Files bool      // fill the text of plan files
	Limit int       // 0: 100
}

// Balance is an optional part of a store: the document of QueueBalance, and the writes of the
// balancer, which holds the role protocol.RoleBalance. storetest.Balances tests it.
type Balance interface {
	Roles

	// Balance returns the document, or nil if there is none. It returns a balance.ErrMalformed for a
	// document that balance.Parse need not read: another program made two, or it has no form in
	// JSON.
	Balance(ctx context.Context) (json.RawMessage, error)

	// SetThreads limits the queue, which was read as was, to so many threads, and changes nothing
	// else of it. If its Threads or Unlimited are others by now, the queue does not change:
	// plan.ErrConflict. If it has these threads already, there is no error. Running tasks continue.
	// The next turn of any instance applies the limit.
	SetThreads(ctx context.Context, was plan.Queue, threads int) error

	// SetBalance sets the keys of a JSON object in the document, and leaves its other keys as they
	// are. It makes the document if there is none. It does not check the values. Settings that are
	// no object are a balance.ErrMalformed.
	SetBalance(ctx context.Context, settings json.RawMessage) error
}

// Results is an optional part of a store: a place for the complete output of tasks. Programs that
// speak Disbatch read it. A log, by contrast, is for people and bounded. storetest.Results tests
// it.
type Results interface {
	// PutResults keeps the output of an attempt on plan.Stdout and plan.Stderr, each from its first
	// byte, however much of it was read before. A nil stream is null. PutResults is for output that
	// is too large to go with the attempt's ending (Printed). It is called before the ending, so
	// that nobody sees an ended task without its results. It replaces earlier results, also those
	// of the same call. It returns plan.ErrClaimLost if the claim is no longer the task's, and then
	// keeps nothing. Bytes that are not UTF-8 may come back as U+FFFD. Mode counts if the database
	// has several places for results.
	PutResults(ctx context.Context, c protocol.Claim, stdout, stderr *io.SectionReader, mode protocol.GFS) error

	// OpenResult opens the output of a task on plan.Stdout or plan.Stderr, whichever program ran
	// it. It returns its size, as far as the writer told it. Null has the size -1, and reads as
	// nothing. If the result is replaced or deleted during the read, the read ends with an error,
	// never early. The context is that of reading, too. Deleting or retrying a task deletes its
	// results.
	OpenResult(ctx context.Context, id plan.TaskID, s plan.Stream) (io.ReadCloser, int64, error)
}

// Packs is an optional part of a store: a place for the job pack of a plan, from which nodes unpack
// what its tasks run. storetest.Packs tests it.
type Packs interface {
	// PutPack keeps the pack of a plan that is being submitted, unless rules.CheckPack refuses, and
	// replaces an earlier one. A submission puts it before it adds tasks, so that none of them runs
	// without it. It goes with its plan, and so does the queue rules.JobQueue if none of its tasks
	// is queued or runs. If the submission is abandoned, the pack goes with the tasks.
	PutPack(ctx context.Context, id plan.PlanID, pack *io.SectionReader) error

	// OpenPack opens the pack of a plan, and returns its size. A plan without one is
	// plan.ErrNotFound. Reading is as with OpenResult.
	OpenPack(ctx context.Context, id plan.PlanID) (io.ReadCloser, int64, error)
}

// Fitter is an optional part of a store that does not keep plans and tasks of any size.
type Fitter interface {
	// Fits returns a plan.ErrTooLarge that names the part of a plan, or of tasks of none, that
	// would not fit. It writes nothing.
	Fits(ctx context.Context, p plan.Plan, tasks []plan.Task) error
}

// Refuser is an optional part of a store into which other programs write, too.
type Refuser interface {
	// Refused describes the records of other programs that no node can serve: a sentence for each
	// queue, with the reason and the remedy.
	Refused(ctx context.Context) ([]string, error)
}

// Batcher is an optional part of a store that prefers batches of some size in a submission.
type Batcher interface {
	// SubmitBatch returns how many tasks a submission should hand to AddTasks at once; 0: any
	// number.
	SubmitBatch() int
}

// FitsAlways is a size that fits into every store, for the params of a plan, and for a task's
// params with its description and list. Nobody needs to ask a Fitter about less. In a document,
// JSON has up to 7 times its bytes (a list of digits). MongoDB also keeps as text what a document
// does not hold exactly.
const FitsAlways = 1 << 20

// Size returns how many bytes of a task count against FitsAlways.
func Size(t *plan.Task) int {
	size := len(t.Params) + len(t.Description)
	if t.Foreach != nil {
		size += len(t.Foreach.List)
	}
	return size
}

// Waiter is an optional part of a distant store: the caller waits there for changes, instead of
// polling.
type Waiter interface {
	// WaitChanges is Changes for one plan. If there is no change yet, it waits for the first, up to
	// so long. The cursor passes over changes elsewhere, so a short answer does not mean that there
	// is no more.
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

	NoCounts bool // their counts may be left out: a store that would have to count them does not
	NoParams bool // their params are left out: a reader of many plans does not read a MiB of each
}

// TaskQuery selects tasks; empty fields select all.
type TaskQuery struct {
	Plan     plan.PlanID
	NoPlan   bool // tasks of no plan
	Name     string
	Subject  string // exactly; with Statuses that are all of unfinished tasks an index finds them
	Prefix   string // of the id's 24 digits
	Queue    plan.QueueID
	Statuses []plan.Status // plan.Failed means every code above 1; any other code means itself
	Of       plan.TaskID   // items of this foreach task, by index
	Parent   plan.TaskID   // with Plan: those that need this task
	NoItems  bool          // no items of foreach tasks
	Retried  bool          // only tasks that were tried more than once
	Troubled bool          // only tasks for which rules.Troubled is true
	Began    bool          // only tasks that ran, as rules.HasRun says
	IDs      []plan.TaskID
	After    plan.TaskID // in the order asked for
	Newest   bool        // newest first; else oldest first
	Reached  bool        // only running tasks that reported progress: costs no more than these
	Needs    bool        // fill Needs
	Params   bool        // fill Params
	Output   bool        // fill Output, if it is kept with the task
	Brief    bool        // the caller needs only ID, Plan, Of, Index, Name, Status, Reason, Started, Ended, and with Needs When, ContinueOnError and Finally; others may be zero
	Limit    int         // 0: 100
}

// A Cursor is a place in a store's feed of changes; its content is the driver's.
type Cursor string

// A Change is one change of a task, or, without a task, of a plan.
type Change struct {
	At      time.Time
	Plan    plan.PlanID
	Task    plan.TaskID
	Name    string
	Of      plan.TaskID
	Status  plan.Status // of the task
	Reason  plan.Reason
	Allowed bool // it failed, and its plan allows that
	Attempt int
	Node    plan.NodeName
	State   plan.Lifecycle // of the plan, if there is no task
	Detail  string
	Output  json.RawMessage // if the driver has it at hand; may be nil
}

// A Hook lets tests kill a driver at a chosen write. The driver calls it before each write, and
// again after the write was made. If the hook returns an error, the driver's work ends at that
// point as if the process had died there. Before the write, the write was not made. After it, the
// write was made, and its answer is lost. A driver that makes several writes concurrently calls the
// hook concurrently.
type Hook func(written bool) error
