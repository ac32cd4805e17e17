package store

import (
	"context"

	"github.com/seed-1177d267/sluice/plan"
)

// Documents is an optional part of a store: its nodes, queues and tasks as Disbatch 4's documents,
// for programs that speak Disbatch. The driver of MongoDB reads the documents there, whoever wrote
// them. Other drivers make them of their own records (package docs). storetest.Documents tests it.
type Documents interface {
	// NodeDocuments returns the nodes that were ever heard of and are not forgotten, by name: _id, node, timestamp, and maxthreads where
	// somebody set it.
	NodeDocuments(ctx context.Context) ([]Document, error)

	// LimitNode is SetMaxThreads of a node that has a document; nil takes the limit off. It reports whether there is such a node, and whether
	// its document is another one now.
	LimitNode(ctx context.Context, n plan.NodeName, threads *int) (there, changed bool, err error)

	// QueueViews returns all queues, the oldest first, with how many tasks each has of each status. It costs a look at every task.
	QueueViews(ctx context.Context) ([]QueueView, error)

	// AddQueue inserts a queue that has no threads yet: nothing of it is claimed before somebody gives it some. ErrExists if the name is taken.
	AddQueue(ctx context.Context, name, plugin string) (plan.QueueID, error)

	// EditQueue changes what the edit names of a queue, and reports whether it is another one now. Threads take away that it is unlimited.
	// ErrNotFound if there is no such queue, ErrExists if another one has the name. The next turn of any instance keeps to it.
	EditQueue(ctx context.Context, id plan.QueueID, e QueueEdit) (changed bool, err error)

	QueueDeleter

	// TaskIndexes returns the present indexes on tasks that any program may rely on, each by its
	// fields in order. It leaves out indexes that the driver made for itself, and partial ones.
	TaskIndexes(ctx context.Context) ([]Index, error)

	// CountTaskDocuments returns how many tasks match all conditions.
	CountTaskDocuments(ctx context.Context, where []Condition) (int, error)

	// TaskDocuments calls do with each task that matches all conditions, until that returns an error, which it then returns. Their order is
	// the database's, which is mostly that of their making. Fields that only the driver knows are not in them.
	TaskDocuments(ctx context.Context, q DocumentQuery, do func(Document) error) error

	// CollectionDocuments is TaskDocuments for a collection by its name. A missing collection has
	// no documents. Names that begin with "system." or contain $ are plan.ErrNotFound.
	CollectionDocuments(ctx context.Context, name string, q DocumentQuery, do func(Document) error) error
}

// A QueueDeleter is an optional part of a store: it can delete queues.
type QueueDeleter interface {
	// DeleteQueue deletes a queue unless rules.CheckDeleteQueue refuses. A plan that is submitted at
	// the same time may miss its queue, as after any other program's deletion. Its tasks stay;
	// claimed and running ones continue. Expire keeps them as long as the driver's default says. A
	// missing queue is plan.ErrNotFound.
	DeleteQueue(ctx context.Context, id plan.QueueID) error
}

// A Document is what a database of documents has, as a JSON object. Its values are nil, bool, string, int64, float64, json.Number, time.Time,
// plan.ID, []any and map[string]any.
type Document = map[string]any

// A DocumentQuery selects documents.
type DocumentQuery struct {
	Where  []Condition
	Fields map[string]bool // those to be had (true), or to be left out (false), by their paths; all but _id say the same; none: all
	Sort   []SortKey       // of tasks: the first key counts first; then, and without any, the order is the database's
	Skip   int
	Limit  int // 0: none
}

// A SortKey is a field by which documents are ordered: a field of tasks that is no object. A field without a value comes first.
type SortKey struct {
	Field string
	Down  bool // the largest comes first
}

// A Condition of documents: the field, a path with dots, is one of the values, or a list in which one of them is. Nil is also a field that
// is not there. Values are nil, bool, string, json.Number, time.Time, plan.ID, and json.RawMessage: an object, in which
// no operator of a database is. Op says another way to compare.
type Condition struct {
	Field string
	Op    Op
	Any   []any
}

// An Op is how a condition compares.
type Op string

// The comparisons. All but AnyOf, NoneOf and Exists have one value: a number, a text, an instant or
// an id. They are true only for a value of the same kind.
const (
	AnyOf   Op = ""
	NoneOf  Op = "nin"
	Above   Op = "gt"
	AtLeast Op = "gte"
	Below   Op = "lt"
	AtMost  Op = "lte"
	Exists  Op = "exists" // its value is true if the field is to be there, else false
)

// An Index names the fields of an index in order.
type Index struct {
	Name   string
	Fields []string
}

// A QueueView is a queue as programs that speak Disbatch see it.
type QueueView struct {
	ID       plan.QueueID
	Name     string
	Plugin   string
	Threads  *int                // nil: nobody set it, or the queue is unlimited
	Statuses map[plan.Status]int // how many tasks it has of each
}

// A QueueEdit is what is to be changed of a queue; nil stays.
type QueueEdit struct {
	Name, Plugin *string
	Threads      *int
}
