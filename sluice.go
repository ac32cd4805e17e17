// Package sluice is the API for Go programs: it opens a store, submits plans, follows them and changes
// them. Package plan has the types, and package den makes a process a node that runs tasks.
//
//	st, err := sluice.Open(ctx, "sqlite:plans.db")
//	run, err := st.Submit(ctx, spec, sluice.WithKey("nightly-2026-11-22"))
//	err = den.Run(ctx, st, den.Config{Threads: 8, Plugins: reg, Plan: run.ID})
//	p, err := st.Wait(ctx, run.ID)
//
// All state is in the store. A process may be killed at any instant: the store queues its tasks
// again for the next node. A task that has finished does not run again.
//
// # Errors
//
// Errors are tested with errors.Is. The sentinels of package plan are for cases that a caller can
// act on. The most frequent are plan.ErrNotFound, plan.ErrConflict, plan.ErrPlanActive,
// plan.ErrPlanEnded and plan.ErrUnavailable. After plan.ErrUnavailable, and after an error that is
// no sentinel, a write may have been made or not. Every method may be called again then. Submit and
// Add would submit twice: give Submit a key.
//
// # Secrets
//
// Methods that read return *** in place of secrets that plans and queues name. Nodes get the true
// values.
package sluice

import (
	"context"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/halt"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/hiding"
	"github.com/seed-1177d267/sluice/internal/store/open"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

var (
	// ErrURI means that a text names no store.
	ErrURI = open.ErrURI
	// ErrQueue means that a queue does not suit a plan or a task. The queue runs another plugin,
	// has a higher limit than the plan asks for, or does not exist although it must.
	ErrQueue = submit.ErrQueue
	// ErrNothingRuns means that no task of a plan runs, so that there is nothing to stop.
	ErrNothingRuns = halt.ErrIdle
	// ErrNoCleanUps means that a plan runs no clean-ups after a failure: cancel the plan instead.
	ErrNoCleanUps = halt.ErrStops
)

// node is what package den asks for. Its methods are for den alone.
type node = den.Store

// A Store holds plans, tasks and queues: a database, or a server before one. Any number of goroutines
// may use it at once, and any number of processes the same database.
type Store struct {
	node
	driver store.Store // as it is
	shown  store.Store // without what is secret
	far    bool        // a server is between

	plugins *plugins.Registry // may refuse tasks; nil: none does
	firer   firer
}

// An OpenOption changes how Open and OpenExisting open a store.
type OpenOption func(*Store)

// WithPlugins makes Submit, Begin and Add ask the plugins that are a plugins.Refuser. They return
// plan.Problems for a task that its plugin refuses, and then change nothing.
func WithPlugins(r *plugins.Registry) OpenOption { return func(s *Store) { s.plugins = r } }

// refused returns plan.Problems for tasks that their plugins refuse.
func (s *Store) refused(spec *plan.Spec) error {
	if s.plugins != nil {
		if problems := s.plugins.Refused(spec); problems != nil {
			return problems
		}
	}
	return nil
}

// Open opens the store that the URI names, and makes it if it is not there yet:
//
//	sqlite:PATH                  a SQLite file, for the processes of one machine
//	mongodb://HOST/DATABASE      a MongoDB database, for any number of machines; also mongodb+srv://
//	memory:                      a new, empty store for this process alone, which Close deletes
//
// An empty URI is the store that the command line uses: the value of SLUICE_STORE, else a file of the
// user's own. Open returns ErrURI for a text that names no store, and plan.ErrUnavailable,
// plan.ErrNewerSchema or plan.ErrFull for a store that cannot be opened.
func Open(ctx context.Context, uri string, options ...OpenOption) (*Store, error) {
	return opened(ctx, uri, open.Open, options)
}

// OpenExisting is Open for programs that only look at what is there: it makes no store, and returns
// plan.ErrNoStore where there is none.
func OpenExisting(ctx context.Context, uri string, options ...OpenOption) (*Store, error) {
	return opened(ctx, uri, open.Existing, options)
}

func opened(ctx context.Context, uri string, how func(context.Context, string) (store.Store, error), options []OpenOption) (*Store, error) {
	if uri == "" {
		uri, _ = open.Default()
	}
	if uri == "memory:" {
		how = func(ctx context.Context, _ string) (store.Store, error) { return open.Private(ctx) }
	}
	st, err := how(ctx, uri)
	if err != nil {
		return nil, err
	}
	s := &Store{node: st, driver: st, shown: hiding.New(st)}
	for _, option := range options {
		option(s)
	}
	return s, nil
}

// Close closes the store. Nothing may be called after, and no node may run on the store.
func (s *Store) Close() error { return s.driver.Close() }

// Unwrap returns the driver below, with which package den finds what the store offers to nodes.
func (s *Store) Unwrap() den.Store { return s.driver }
