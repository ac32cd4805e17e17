package mongodb

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// The reasons for which a task is held. Release queues or skips only tasks that are held for their
// parents.
const (
	holdNeeds  = "needs"  // its parents
	holdDelay  = "delay"  // the instant in notbefore
	holdItems  = "items"  // of a foreach task: that its items are made, and then that they finish
	holdItem   = "item"   // of an item: that all of them are in
	holdAdding = "adding" // that the plan takes it, which was ready before it came
	holdRetry  = "retry"  // that all tasks of the retry in gate are held
	holdEnd    = "end"    // of a task of finally: that all others of its plan end
)

// The states of a late addition of several tasks, in its first task. Any process takes or refuses a
// complete addition as a whole, and discards a dead one. One write decides, so that an adder that
// stood still does not make a plan take tasks that are being discarded.
const (
	leadAdding = 1 // not all of its tasks may be in
	leadWhole  = 2
	leadDead   = 3
)

// smallOutput is up to how many bytes an output lies where it is read together with the status of a parent.
const smallOutput = 4 << 10

// taskDoc is a task as it is kept. Readers fill what they ask for. Times are of the server's clock.
type taskDoc struct {
	ID     bson.ObjectID `bson:"_id"`
	Queue  bson.ObjectID `bson:"queue,omitempty"`
	Status plan.Status   `bson:"status"`
	Node   nodeName      `bson:"node"`
	Ctime  time.Time     `bson:"ctime"`
	Mtime  time.Time     `bson:"mtime"`
	Params given         `bson:"params,omitempty"`

	Parameters exists `bson:"parameters,omitempty"` // see errParameters

	Plan      bson.ObjectID   `bson:"plan,omitempty"`
	Name      string          `bson:"name,omitempty"`
	Subject   string          `bson:"subject,omitempty"` // of Def, for an index
	Rank      int64           `bson:"rank,omitempty"`
	Def       text            `bson:"def,omitempty"`       // plan.Definition as JSON
	Along     bool            `bson:"along,omitempty"`     // a foreach task that has an item for each item of other tasks, its heads
	Budget    bool            `bson:"budget,omitempty"`    // max_failures, of a foreach task or of an item of one
	Over      bool            `bson:"over,omitempty"`      // of a foreach task: more items failed than that allows
	Lenient   bool            `bson:"coe,omitempty"`       // its continue_on_error, which counts and verdicts ask for
	Finally   bool            `bson:"finally,omitempty"`   // it is one of finally
	Secret    bool            `bson:"hassecret,omitempty"` // it names params that are secret: docs.SecretField
	Text      text            `bson:"text,omitempty"`      // params, where a document does not hold them without loss
	Needs     []bson.ObjectID `bson:"needs,omitempty"`     // its parents, if they are at most joinSize
	Joins     int             `bson:"joins,omitempty"`     // else how many joins hold them
	Shared    int             `bson:"shared,omitempty"`    // of a task of no plan that has ended: how often tasks were added that need it
	Deleting  bool            `bson:"deleting,omitempty"`  // the same: its deletion has begun
	Rolling   bool            `bson:"rolling,omitempty"`   // the same: it is in the batch that its gate names, see roll.go
	Of        bson.ObjectID   `bson:"of,omitempty"`
	Index     int             `bson:"index,omitempty"`
	Made      int             `bson:"made,omitempty"` // of an item: see made
	Hold      string          `bson:"hold,omitempty"`
	Gate      bson.ObjectID   `bson:"gate,omitempty"`   // the retry that holds it, or is about to
	Adding    bson.ObjectID   `bson:"adding,omitempty"` // its parents were not looked at since it was added: the plan, or who added it
	Batch     int             `bson:"batch,omitempty"`  // how many tasks were added with it
	Lead      int             `bson:"lead,omitempty"`   // of the first of them: what has become of the addition
	Gen       int             `bson:"gen"`              // counts retries, so that what was read before one changes nothing after it
	NotBefore time.Time       `bson:"notbefore,omitempty"`
	Open      bool            `bson:"open,omitempty"` // not finished yet, or not released yet

	Reason   plan.Reason `bson:"reason,omitempty"`
	Detail   string      `bson:"detail,omitempty"`
	Exit     *exitDoc    `bson:"exit,omitempty"`
	Output   text        `bson:"output,omitempty"` // up to smallOutput
	Large    text        `bson:"large,omitempty"`  // the output, if it is longer
	Bytes    int         `bson:"bytes,omitempty"`  // of the output
	Gathered bool        `bson:"gathered,omitempty"`
	Complete bool        `bson:"complete,omitempty"` // Disbatch: nothing more comes

	Attempt  int           `bson:"attempt,omitempty"`
	Rescues  int           `bson:"rescues,omitempty"`
	Token    bson.ObjectID `bson:"token,omitempty"`
	Last     bson.ObjectID `bson:"last,omitempty"` // the round that ended a claim of it last
	Ran      bool          `bson:"ran,omitempty"`  // as plan.Task has it; also of a task that has ended since
	Instance bson.ObjectID `bson:"instance,omitempty"`
	Slot     int           `bson:"slot,omitempty"`
	NodeSlot int           `bson:"nodeslot,omitempty"`
	QNSlot   int           `bson:"qnslot,omitempty"` // of the queue on the node
	Cancel   bool          `bson:"cancel,omitempty"`
	Leaves   bool          `bson:"leaves,omitempty"` // an item that a retry found not to be in its list any more
	ByRef    bool          `bson:"byref,omitempty"`
	Ours     bool          `bson:"ours,omitempty"`   // only nodes of Sluice can run it: see nobody
	Lines    int64         `bson:"lines,omitempty"`  // of its log
	Sealed   bson.A        `bson:"sealed,omitempty"` // tokens of the claims whose endings brought log entries
	Started  time.Time     `bson:"started,omitempty"`
	Ended    time.Time     `bson:"ended,omitempty"`

	// For a task that another program ended, until its output is in: when a sweep first saw the
	// end, and the mtime that the task had then.
	Noticed time.Time `bson:"noticed,omitempty"`
	Claimed time.Time `bson:"claimed,omitempty"`

	// For a foreach task:
	Making   bool   `bson:"making,omitempty"` // its items are being inserted, and then queued
	Expanded bool   `bson:"expanded,omitempty"`
	Empty    bool   `bson:"empty,omitempty"` // it is a foreach task that ended since it has no items: for readers
	Items    int    `bson:"items,omitempty"`
	Inserted int    `bson:"inserted,omitempty"` // of its items,
	Released int    `bson:"released,omitempty"` // and how many of those were queued
	List     string `bson:"list,omitempty"`     // names the list of its items in the collection of items

	// Disbatch's: a string, the id of a file, or null, as it is inserted.
	Stdout stream `bson:"stdout"`
	Stderr stream `bson:"stderr"`

	odd []string // fields of another type, which were not read
}

// lacks implements odd.
func (t *taskDoc) Lacks(fields []string) { t.odd = fields }

// bound implements bounded.
func (t *taskDoc) Bound() { wire.Within(&t.Index, &t.Items, &t.Inserted, &t.Released, &t.Joins) }

// stream is what a task printed, as Disbatch keeps it.
type stream struct{ value bson.RawValue }

// MarshalBSONValue implements bson.ValueMarshaler.
func (s stream) MarshalBSONValue() (byte, []byte, error) {
	if s.value.Type == 0 {
		return byte(bson.TypeNull), nil, nil
	}
	return byte(s.value.Type), s.value.Value, nil
}

// UnmarshalBSONValue implements bson.ValueUnmarshaler.
func (s *stream) UnmarshalBSONValue(typ byte, data []byte) error {
	s.value = bson.RawValue{Type: bson.Type(typ), Value: bytes.Clone(data)}
	return nil
}

type exitDoc struct {
	Code   int    `bson:"code"`
	Signal string `bson:"signal,omitempty"`
}

// nodeName is null in a task that is nobody's; older programs write -1.
type nodeName string

// nobodyElse is the node of a task that is nobody's, and which nodes of other programs are not to claim: they take those alone whose node is
// null or -1. It is written as false, and read as nobody.
const nobodyElse nodeName = "\x00"

// nobody is the node of a free task. Some free tasks only Sluice can run: they read their parents'
// outputs by reference, which are not in their params, or they are a foreach whose items a node
// makes.
func (t *taskDoc) nobody() nodeName {
	if t.Ours {
		return nobodyElse
	}
	return ""
}

// MarshalBSONValue implements bson.ValueMarshaler.
func (n nodeName) MarshalBSONValue() (byte, []byte, error) {
	switch n {
	case "":
		return byte(bson.TypeNull), nil, nil
	case nobodyElse:
		return byte(bson.TypeBoolean), []byte{0}, nil
	}
	typ, data, err := bson.MarshalValue(string(n))
	return byte(typ), data, err
}

// UnmarshalBSONValue implements bson.ValueUnmarshaler.
func (n *nodeName) UnmarshalBSONValue(typ byte, data []byte) error {
	if *n = ""; bson.Type(typ) == bson.TypeString {
		*n = nodeName(bson.RawValue{Type: bson.TypeString, Value: data}.StringValue())
	}
	return nil
}

func oid(id plan.ID) bson.ObjectID { return bson.ObjectID(id) }

func taskID(id bson.ObjectID) plan.TaskID { return plan.TaskID{ID: plan.ID(id)} }

func planID(id bson.ObjectID) plan.PlanID { return plan.PlanID{ID: plan.ID(id)} }

// definition reads what a person wrote about the task; of another program's task there is nothing.
func (t *taskDoc) definition() (plan.Definition, error) {
	def := plan.Definition{Rank: t.Rank}
	if len(t.Def) > 0 {
		if err := json.Unmarshal(t.Def, &def); err != nil {
			return plan.Definition{Rank: t.Rank}, fmt.Errorf("its definition cannot be read: %w", err)
		}
	}
	return def, nil
}

// params returns the task's params as JSON: an object, or nil if there are none.
func (t *taskDoc) params() (json.RawMessage, error) {
	if isObject(t.Text) {
		return json.RawMessage(t.Text), nil
	}
	p, err := t.Params.json()
	if err == nil && len(t.Params.document) == 0 && len(p) > 0 && !isObject(p) {
		err = fmt.Errorf("its params are %s; they have to be an object: %.60s", kindOf(p), p)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// kindOf names the kind of a JSON value that is no object.
func kindOf(v json.RawMessage) string {
	switch v[0] {
	case '"':
		return "a text"
	case '[':
		return "a list"
	}
	return "a single value"
}

// output returns the output as far as it is kept with the task.
func (t *taskDoc) output() json.RawMessage {
	if len(t.Large) > 0 {
		return json.RawMessage(t.Large)
	}
	if len(t.Output) == 0 {
		return nil
	}
	return json.RawMessage(t.Output)
}

// counted reports whether the task has finished as far as its children may count on it. A task that a retry is about to take back has not.
func (t *taskDoc) counted(now time.Time) bool {
	if !t.Status.Finished() || !t.Gate.IsZero() {
		return false
	}
	return !t.Open || t.othersEnd().Counts(now)
}

// othersEnd is the end of an open task, as another program wrote it.
func (t *taskDoc) othersEnd() *rules.OthersEnd {
	e := &rules.OthersEnd{Status: t.Status, Complete: t.Complete, Noticed: t.Noticed, Claimed: t.Mtime}
	if !t.Noticed.IsZero() {
		e.Claimed = t.Claimed // mtime is that of the notice
	}
	return e
}

// adopted reports whether the task counts, and what another program printed was made its output.
func (t *taskDoc) adopted(now time.Time) bool {
	return t.counted(now) && (!t.Open || !t.Ended.IsZero())
}

// domain makes the task that callers know, as far as it can be read: what another program wrote is shown as it is. Needs, and what has to be
// put together, are the caller's.
func (t *taskDoc) domain() plan.Task {
	def, damaged := t.definition()
	params, err := t.params()
	if err != nil {
		params, _ = t.Params.json()
	}
	out := plan.Task{
		ID: taskID(t.ID), Plan: planID(t.Plan), Name: t.Name, Queue: plan.QueueID{ID: plan.ID(t.Queue)}, Definition: def, Params: params,
		Of: taskID(t.Of), Index: t.Index, Status: t.Status, Reason: t.Reason, Detail: t.Detail, Output: t.output(), Attempt: t.Attempt,
		Rescues: t.Rescues, Expanding: t.Making && !t.Expanded, Expanded: t.Expanded || t.Empty, Items: t.shownItems(),
		Cancel: t.Cancel, Node: plan.NodeName(t.Node), Instance: plan.InstanceID{ID: plan.ID(t.Instance)},
		NotBefore: utc(t.NotBefore), Created: utc(t.Ctime), Modified: utc(t.Mtime), Started: utc(t.Started), Ended: utc(t.Ended),
	}
	if t.Status.Finished() && t.Ended.IsZero() {
		out.Ended = utc(t.Noticed) // another program ended it: its mtime may be that of the claim
	}
	out.Ran = t.Ran && rules.ShowsRan(t.Status)
	if t.Exit != nil {
		out.Exit = &plan.Exit{Code: t.Exit.Code, Signal: t.Exit.Signal}
	}
	if damaged != nil && out.Detail == "" {
		out.Detail = damaged.Error()
	}
	return out
}

// shownItems is how many items the task has. A task that ended before all items were in has no others.
func (t *taskDoc) shownItems() int {
	if t.Status.Finished() && !t.Expanded {
		return min(t.Items, t.Inserted)
	}
	return t.Items
}

// utc keeps the zero instant zero.
func utc(at time.Time) time.Time {
	if at.IsZero() {
		return time.Time{}
	}
	return at.UTC()
}

// setParams fills Params and Text.
func (t *taskDoc) setParams(params json.RawMessage) error {
	doc, exact, err := encodeParams(params)
	if err != nil {
		return err
	}
	t.Params = given{document: doc}
	if t.Text = nil; !exact {
		t.Text = text(params)
	}
	return nil
}

// setDefinition fills Def and what is drawn from it.
func (t *taskDoc) setDefinition(def plan.Definition) error {
	raw, err := json.Marshal(def)
	if err != nil {
		return fmt.Errorf("definition: %w", err)
	}
	t.Rank, t.Lenient, t.Secret, t.Subject, t.Def = def.Rank, def.ContinueOnError, len(def.Secrets) > 0, def.Subject, nil
	t.Finally = def.Finally
	t.Along, t.Budget = def.Foreach != nil && len(def.Foreach.Each) > 0, def.MaxFailures != ""
	if string(raw) != "{}" {
		t.Def = raw
	}
	return nil
}

func instanceID(id bson.ObjectID) plan.InstanceID { return plan.InstanceID{ID: plan.ID(id)} }

// nobodys is the node of tasks that nobody has: other programs write null or -1.
var nobodys = d("$in", bson.A{nil, -1, nobodyElse})

// validText makes text that a string of the server can hold.
func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// exists is true of a field that is there.
type exists bool

// errParameters is why a task does not run.
var errParameters = fmt.Errorf("it has parameters, as DEN 1.1 writes them, and no params: rename the field, and queue the task again")

// outcome is how a task that has finished counts for its children and its foreach task, as rules.OutcomeOfTask says.
func (t *taskDoc) outcome() rules.Outcome {
	return rules.OutcomeOf(t.Status, t.Reason, t.Lenient && !t.Budget)
}

func (t *taskDoc) hasParents() bool { return len(t.Needs) > 0 || t.Joins > 0 }

// key is what the task is called: its name, or its id if it has none.
func (t *taskDoc) key() string { return cmp.Or(t.Name, t.ID.Hex()) }

// named is what refusals are made of: the task with its id, name and state.
func (t *taskDoc) named() *plan.Task {
	return &plan.Task{ID: taskID(t.ID), Name: t.Name, Status: t.Status, Reason: t.Reason, Started: utc(t.Started), NotBefore: utc(t.NotBefore)}
}

// dropsItems reports whether a foreach task ended before its items did.
func (t *taskDoc) dropsItems() bool {
	return t.Items > 0 && rules.EndsItems(t.Status, t.Reason)
}

// endsWithItems reports whether the task is a held foreach task that waits for nothing but the end of its items.
func (t *taskDoc) endsWithItems() bool { return t.heldFor(holdItems) && t.Expanded }

// inputName is what a parent is called among the inputs of its child.
func (t *taskDoc) inputName() string { return rules.InputName(t.key(), !t.Of.IsZero()) }

// inputSize returns what a child knows of a task before it reads the output.
func (t *taskDoc) inputSize() rules.InputSize {
	return rules.InputSize{Name: t.inputName(), Bytes: t.Bytes, Gathered: t.Gathered}
}

// mark notes that a person wants the task ended. A task that is marked does not change by it.
func (t *taskDoc) mark() bson.D {
	if t.Cancel {
		return d("$set", d("cancel", true))
	}
	return marks()
}

// marks is the update that marks tasks which are not marked.
func marks() bson.D { return d("$set", d("cancel", true), "$currentDate", d("mtime", true)) }

// newTask makes the document of a submitted task, and the joins of its parents if these are many.
func newTask(t *plan.Task, hold string, now time.Time) (doc taskDoc, joins []any, err error) {
	doc = taskDoc{
		ID: oid(t.ID.ID), Queue: oid(t.Queue.ID), Ctime: t.Created, Mtime: now, Plan: oid(t.Plan.ID), Name: t.Name,
		Of: oid(t.Of.ID), Index: t.Index, NotBefore: t.NotBefore, Open: true,
	}
	if t.Finally && t.Of.IsZero() {
		hold = holdEnd
	}
	doc.hold(hold)
	if doc.Ctime.IsZero() {
		doc.Ctime = now
	}
	if err := doc.setDefinition(t.Definition); err != nil {
		return doc, nil, err
	}
	if err := doc.setParams(t.Params); err != nil {
		return doc, nil, err
	}
	for _, need := range t.Needs {
		doc.Needs = append(doc.Needs, oid(need.ID))
	}
	if len(doc.Needs) > joinSize {
		joins = joinParents(&doc, t.When)
		doc.Needs, doc.Joins = nil, len(joins)
	}
	return doc, joins, nil
}

func idsOfTasks(docs []taskDoc) idList {
	return idsFrom(docs, func(t taskDoc) bson.ObjectID { return t.ID })
}

// planDoc is a plan as it is kept.
type planDoc struct {
	ID        bson.ObjectID  `bson:"_id"`
	Name      string         `bson:"name"`
	Run       int            `bson:"run"`
	State     plan.Lifecycle `bson:"state"`
	Closing   plan.Closing   `bson:"closing,omitempty"`
	Finally   bool           `bson:"finally,omitempty"`
	Ending    plan.Lifecycle `bson:"ending,omitempty"`  // as plan.Plan has it,
	Stopped   plan.Closing   `bson:"stopped,omitempty"` // and this
	OnFailure plan.OnFailure `bson:"on_failure,omitempty"`
	Overlap   plan.Overlap   `bson:"overlap,omitempty"`
	Priority  int            `bson:"priority,omitempty"`
	Params    text           `bson:"params,omitempty"`
	Secrets   []string       `bson:"secrets,omitempty"`
	By        string         `bson:"by,omitempty"`
	Source    string         `bson:"source,omitempty"`
	File      *planFileDoc   `bson:"file,omitempty"` // readers of plans leave it out
	Key       string         `bson:"key,omitempty"`
	Request   string         `bson:"request,omitempty"`
	Own       bool           `bson:"own,omitempty"`
	Keep      time.Duration  `bson:"keep,omitempty"`
	Timeout   time.Duration  `bson:"timeout,omitempty"`
	Deadline  time.Time      `bson:"deadline,omitempty"`
	Size      int            `bson:"size,omitempty"`
	Edits     int            `bson:"edits"`
	Fresh     bool           `bson:"fresh,omitempty"`    // it became ready, or was retried, and not all of what that releases is released
	Retry     bson.ObjectID  `bson:"retry,omitempty"`    // the retry that is going on
	Adds      bson.A         `bson:"adds,omitempty"`     // late additions that were confirmed and are not released yet
	Deleting  bool           `bson:"deleting,omitempty"` // its deletion has begun
	Ctime     time.Time      `bson:"ctime"`
	Mtime     time.Time      `bson:"mtime"`
	Retried   time.Time      `bson:"retried,omitempty"`
	Ended     time.Time      `bson:"ended,omitempty"`
}

// planFileDoc is a plan.File as it is kept.
type planFileDoc struct {
	Text string `bson:"text"`
	Dir  string `bson:"dir,omitempty"`
}

// inFinally is plan.Plan.InFinally.
func (p *planDoc) inFinally() bool { return p.Ending != plan.PlanRunning && !p.State.Ended() }

func (p *planDoc) title() string { return fmt.Sprintf("%s#%d", p.Name, p.Run) }

func (p *planDoc) domain() plan.Plan {
	return plan.Plan{
		ID: planID(p.ID), Name: p.Name, Run: p.Run, State: p.State, Closing: p.Closing, Finally: p.Finally, Ending: p.Ending, Stopped: p.Stopped, OnFailure: p.OnFailure, Overlap: p.Overlap, Priority: p.Priority, Params: json.RawMessage(p.Params),
		Secrets: p.Secrets, By: p.By, Request: p.Request, Source: p.Source, Own: p.Own, Keep: p.Keep, Timeout: p.Timeout, Deadline: utc(p.Deadline), Size: p.Size, Edits: p.Edits,
		Created: utc(p.Ctime), Modified: utc(p.Mtime), Retried: utc(p.Retried), Ended: utc(p.Ended),
	}
}

// runDoc reserves a run of a name while its plan is being inserted. The index on name and run would do alone, but servers on PostgreSQL
// take a second to see that two inserts of one key wait for each other.
type runDoc struct {
	Title string        `bson:"_id"`
	Plan  bson.ObjectID `bson:"plan"`
	At    time.Time     `bson:"at"`
}

// highestRun is the highest run of a name of which plans were deleted, among those: no run comes again.
type highestRun struct {
	Name string `bson:"_id"`
	Run  int    `bson:"run"`
}

// goneFor is how long an instance is remembered that is gone: a call of Register that is made again may come so late.
const goneFor = 10 * time.Minute

// instanceDoc is a process that claims tasks. The document of a dead one stays a while, so that the
// process does not register again.
type instanceDoc struct {
	ID      bson.ObjectID `bson:"_id"`
	Node    plan.NodeName `bson:"node"`
	Host    string        `bson:"host"`
	PID     int           `bson:"pid"`
	Process string        `bson:"process,omitempty"` // the process's identity
	Lease   time.Duration `bson:"lease"`
	Threads int           `bson:"threads"`
	Plugins []string      `bson:"plugins"`
	Active  queueIDs      `bson:"activequeues,omitempty"`
	Ignored queueIDs      `bson:"ignorequeues,omitempty"`
	Plan    bson.ObjectID `bson:"plan,omitempty"`
	Version string        `bson:"version,omitempty"`
	Sole    bool          `bson:"sole,omitempty"` // see ownerDoc
	Runner  bool          `bson:"runner,omitempty"`
	Pauses  []pauseDoc    `bson:"pauses,omitempty"`
	Beats   int64         `bson:"beats"`
	Beat    time.Time     `bson:"beat"`
	Gone    bool          `bson:"gone,omitempty"`
}

// A pauseDoc is a queue with tasks that the instance could not begin.
type pauseDoc struct {
	Queue bson.ObjectID `bson:"queue"`
	Each  time.Duration `bson:"each,omitempty"`
	Why   string        `bson:"why,omitempty"`
	Tasks idList        `bson:"tasks,omitempty"`
}

func pausesOf(pauses []plan.Pause) []pauseDoc {
	docs := make([]pauseDoc, len(pauses))
	for i, p := range pauses {
		docs[i] = pauseDoc{oid(p.Queue.ID), p.Each, p.Why, idsFrom(p.Tasks, func(id plan.TaskID) bson.ObjectID { return oid(id.ID) })}
	}
	return docs
}

func (i *instanceDoc) pauses() (pauses []plan.Pause) {
	for _, p := range i.Pauses {
		pause := plan.Pause{Queue: plan.QueueID{ID: plan.ID(p.Queue)}, Each: p.Each, Why: p.Why}
		for _, id := range p.Tasks {
			pause.Tasks = append(pause.Tasks, taskID(id))
		}
		pauses = append(pauses, pause)
	}
	return pauses
}

// queueIDs are the ids of queues that a person named.
type queueIDs []bson.ObjectID

func idsOf(queues []plan.QueueID) queueIDs {
	return idsFrom(queues, func(q plan.QueueID) bson.ObjectID { return oid(q.ID) })
}

func (ids queueIDs) domain() (queues []plan.QueueID) {
	for _, id := range ids {
		queues = append(queues, plan.QueueID{ID: plan.ID(id)})
	}
	return queues
}

// An ownerDoc, in meta, says which instance has something for its own, a node's name or the role of who balances: as long as that instance
// is registered. Names are kept by it and by no unique index over the instances, since servers on PostgreSQL see only after a second that two
// who insert one key wait for each other.
type ownerDoc struct {
	Owner bson.ObjectID `bson:"owner"`
}

func nameKey(n plan.NodeName) string { return "node:" + string(n) }

// claimsOf matches what an instance has claimed: by the node's name first, which Disbatch's indexes begin with.
func claimsOf(i *instanceDoc) bson.D {
	return onlyActive(d("node", i.Node), "instance", i.ID)
}
