package host

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
)

// AllLabels is the label of an input that belongs to every label.
const AllLabels = -1

// MaxLabel is the largest label of an input.
const MaxLabel = 1<<31 - 1

// An Input is one input of a task. Its replicas are URLs of the same content.
type Input struct {
	Label    int // from 0 to MaxLabel, or AllLabels
	Replicas []string
	Busy     bool // another replica is being made
}

// Inputs is where the inputs of a session come from. Its methods may be called by any goroutine.
type Inputs interface {
	// Inputs returns the inputs so far, in an order that does not change, and whether the list is
	// complete. The caller does not change the list. changed is closed when there is more to know.
	Inputs() (list []Input, complete bool, changed <-chan struct{})
}

// A List is a list of inputs that may grow. Any number of goroutines may use it. The zero value is
// an empty list that is not complete.
type List struct {
	mu       sync.Mutex
	inputs   []Input
	complete bool
	changed  chan struct{}
}

// NewList returns a complete list.
func NewList(inputs ...Input) *List { return &List{inputs: inputs, complete: true} }

// Inputs implements Inputs.
func (l *List) Inputs() (list []Input, complete bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return slices.Clip(l.inputs), l.complete, l.changed
}

// Add adds an input.
func (l *List) Add(in Input) {
	l.change(func() { l.inputs = append(l.inputs, in) })
}

// Complete says that no input follows.
func (l *List) Complete() {
	l.change(func() { l.complete = true })
}

// AddReplicas adds replicas to an input, which is not busy any more.
func (l *List) AddReplicas(input int, urls []string) error {
	return l.update(input, func(in *Input) { in.Replicas, in.Busy = slices.Concat(in.Replicas, urls), false })
}

// SetBusy says whether another replica of an input is being made.
func (l *List) SetBusy(input int, busy bool) error {
	return l.update(input, func(in *Input) { in.Busy = busy })
}

func (l *List) change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// update changes an input in a copy of the list, since sessions read the old one.
func (l *List) update(input int, do func(*Input)) (err error) {
	l.change(func() {
		switch {
		case len(l.inputs) == 0:
			err = fmt.Errorf("there is no input %d yet: give the input first", input)
			return
		case input < 0 || input >= len(l.inputs):
			err = fmt.Errorf("there is no input %d: the inputs so far are 0 to %d", input, len(l.inputs)-1)
			return
		}
		l.inputs = slices.Clone(l.inputs)
		do(&l.inputs[input])
	})
	return err
}

// The waits of a worker whose input has no other replica yet, in seconds.
var waits = [...]int{1, 2, 4, 8, 10}

// A failing is what the worker said of one input that it could not read.
type failing struct {
	order    []int // the replicas that failed, the last failure at the end
	waits    int   // how often it was told to wait since there was another replica
	replicas int   // how many there were then
}

// failings are those of one session, by input.
type failings map[int]*failing

// fail notes that replicas of an input failed. Replicas that are not there do not count.
func (f failings) fail(input int, in *Input, failed []int) {
	of := f[input]
	if of == nil {
		of = &failing{}
		f[input] = of
	}
	for _, id := range failed {
		of.order = slices.DeleteFunc(of.order, func(was int) bool { return was == id })
		of.order = append(of.order, id)
	}
	if of.replicas != len(in.Replicas) {
		of.waits, of.replicas = 0, len(in.Replicas)
	}
}

// wait returns for how many seconds the worker is to wait now.
func (f failings) wait(input int) int {
	of := f[input]
	n := waits[min(of.waits, len(waits)-1)]
	of.waits++
	return n
}

// replicas calls do for each replica of an input: first those that did not fail, then those that
// did, in the order of their failures.
func (f failings) replicas(input int, in *Input, do func(id int)) {
	var failed []int
	if of := f[input]; of != nil {
		failed = of.order
	}
	for id := range in.Replicas {
		if !slices.Contains(failed, id) {
			do(id)
		}
	}
	for _, id := range failed {
		do(id)
	}
}

// appendReplica writes [id,"url"].
func appendReplica(b []byte, id int, url string) []byte {
	b = strconv.AppendInt(append(b, '['), int64(id), 10)
	return append(appendText(append(b, ','), url), ']')
}

// appendRow writes an input as INPUT's reply has it. An id without an input is a row too. The status
// is always "ok": workers of the Python library end as fatal when they meet another one.
func (f failings) appendRow(b []byte, list []Input, id int64) []byte {
	b = strconv.AppendInt(append(b, '['), id, 10)
	if id < 0 || id >= int64(len(list)) {
		return append(b, `,"ok",0,[]]`...)
	}
	in := &list[id]
	b = append(b, `,"ok",`...)
	if in.Label == AllLabels {
		b = append(b, `"all"`...)
	} else {
		b = strconv.AppendInt(b, int64(in.Label), 10)
	}
	b = append(b, ",["...)
	first := true
	f.replicas(int(id), in, func(replica int) {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendReplica(b, replica, in.Replicas[replica])
	})
	return append(b, "]]"...)
}

// rows hands over the row of each input that the worker chose, and returns their number.
func (f failings) rows(list []Input, ch choice, each func(row []byte)) (n int) {
	var row []byte
	add := func(id int64) {
		n++
		row = f.appendRow(row[:0], list, id)
		each(row)
	}
	if ch.word == "include" {
		ch.each(add)
		return n
	}
	var without []bool
	if ch.word == "exclude" {
		without = make([]bool, len(list))
		ch.each(func(id int64) {
			if id >= 0 && id < int64(len(list)) {
				without[id] = true
			}
		})
	}
	for id := range list {
		if without == nil || !without[id] {
			add(int64(id))
		}
	}
	return n
}
