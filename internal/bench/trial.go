package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A scenario measures a group of figures.
type scenario struct {
	name  string // as -run selects it: group/store/shape
	about string
	on    kind // the store that it needs; "": none
	run   func(ctx context.Context, t *trial)
}

// onBoth returns a scenario for each store that is a database.
func onBoth(group, about string, run func(context.Context, *trial)) []scenario {
	var all []scenario
	for _, k := range []kind{onSQLite, onMongoDB} {
		all = append(all, scenario{fmt.Sprintf("%s/%s", group, k), about + ", " + string(k), k, run})
	}
	return all
}

// A trial is a scenario while it is measured. An error ends it, as it ends a test: see check.
type trial struct {
	*bench
	kind    kind
	samples map[string][]float64
	add     func(result)
}

func (b *bench) trial(k kind, add func(result)) *trial {
	return &trial{bench: b, kind: k, samples: map[string][]float64{}, add: add}
}

// again calls do as often as is measured what is usually measured n times.
func (t *trial) again(n int, do func()) {
	for range t.repetitions(n) {
		do()
	}
}

// sample notes a figure of a series.
func (t *trial) sample(series string, figure float64) {
	t.samples[series] = append(t.samples[series], figure)
}

// median returns the median of a series, 0 if it has no figures.
func (t *trial) median(series string) float64 {
	if len(t.samples[series]) == 0 {
		return 0
	}
	return median(t.samples[series])
}

// line adds a line with the median of one series, and that of its peer's. Without figures of the peer the line names no peer.
func (t *trial) line(series, peer string, r result) {
	r.Value, r.PeerVal = t.median(series), t.median(peer)
	if r.PeerVal == 0 && peer != "" {
		r.Peer = ""
	}
	t.add(r)
}

// A failure is an error that ended a trial.
type failure struct{ error }

// check ends a trial, or a process of one, with an error if there is one.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must is check for a call that returns something else too.
func must[T any](v T, err error) T {
	check(err)
	return v
}

// failf ends a trial.
func failf(format string, args ...any) { check(fmt.Errorf(format, args...)) }

// sleep waits, and reports whether it did so to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// pause is sleep for a trial, which ends with ctx.
func pause(ctx context.Context, d time.Duration) {
	if !sleep(ctx, d) {
		check(ctx.Err())
	}
}

// try calls do, and returns the error that ended it.
func try(do func()) (err error) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case failure:
			err = errors.Join(err, f.error)
		default:
			panic(f)
		}
	}()
	do()
	return nil
}
