package runner

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/seed-1177d267/sluice/plugins"
)

// lastRead is how long the end of the output is waited for when all that should write is dead.
const lastRead = 250 * time.Millisecond

// shortly is how long only the streams of a command are watched. A process that exits and leaves its streams to others is noticed so much
// later.
const shortly = 20 * time.Millisecond

// readSize is how much is read at once; two such buffers are held for each running command.
const readSize = 16 << 10

var buffers = sync.Pool{New: func() any { return new([readSize]byte) }}

// running is a command with the pipes to its standard streams, by their numbers, and the goroutines that serve them.
type running struct {
	process *process
	pipes   [3]*os.File // our ends; the first is nil if the command reads nothing
	stdout  *lines
	serving int           // goroutines whose value of ended was not received yet
	ended   chan struct{} // one value from each
}

// launch starts the command.
func launch(cmd *Command, out *Output) (*running, error) {
	program, err := lookup(cmd)
	if err != nil {
		return nil, err
	}
	r := &running{ended: make(chan struct{}, 3)}
	theirs, err := r.open(len(cmd.Stdin) > 0)
	if err == nil {
		r.process, err = start(cmd, program, theirs)
	}
	closeAll(theirs)
	if err != nil {
		closeAll(r.pipes)
		return nil, notStarted(cmd, program, err)
	}
	if r.pipes[0] != nil {
		r.serving++
		go r.feed(cmd.Stdin)
	}
	r.stdout = newLines(out, Stdout)
	r.serving++
	go r.serve(r.pipes[2], newLines(out, Stderr))
	return r, nil
}

// notStarted says why the command could not be started, and that it was not.
func notStarted(cmd *Command, program string, err error) error {
	why := explain(cmd, program, err)
	if errors.Is(err, syscall.E2BIG) || errors.Is(err, syscall.EINVAL) { // which are so on every node
		return why
	}
	return plugins.NotBegun(why)
}

// open makes the pipes and returns the command's ends of them.
func (r *running) open(input bool) (theirs [3]*os.File, err error) {
	if input {
		if theirs[0], r.pipes[0], err = os.Pipe(); err != nil {
			return theirs, err
		}
	}
	if r.pipes[1], theirs[1], err = pipe(); err != nil {
		return theirs, err
	}
	r.pipes[2], theirs[2], err = pipe()
	return theirs, err
}

func closeAll(files [3]*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// capture reads one stream to its end, or to the deadline of its reads, and reports whether that
// has come.
func capture(from *os.File, to *lines) (late bool) {
	buf := buffers.Get().(*[readSize]byte)
	defer buffers.Put(buf)
	for {
		n, err := from.Read(buf[:])
		if n > 0 {
			to.write(buf[:n], time.Now())
		}
		if err != nil {
			return errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
}

// serve captures a stream until it ends, or finish reads no further.
func (r *running) serve(from *os.File, to *lines) {
	capture(from, to)
	to.close(time.Now())
	r.ended <- struct{}{}
}

func (r *running) feed(input []byte) {
	r.pipes[0].Write(input) // a command need not read its input
	r.pipes[0].Close()
	r.ended <- struct{}{}
}

// await returns when the command's own process has exited. Most commands are short and hold their
// streams to the end, so the end of both streams is the sign. The goroutine of the caller reads one
// of them. A command that runs longer, or closes its streams before, has its process watched too.
func (r *running) await() {
	if r.pipes[1].SetReadDeadline(time.Now().Add(shortly)) == nil && !capture(r.pipes[1], r.stdout) {
		r.stdout.close(time.Now())
	} else {
		r.pipes[1].SetReadDeadline(time.Time{})
		r.serving++
		go r.serve(r.pipes[1], r.stdout)
	}
	r.wait(shortly)
	r.process.await()
}

// wait waits until the command's streams have ended, at most for d, and reports whether they have.
func (r *running) wait(d time.Duration) bool {
	if r.serving == 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	for r.serving > 0 {
		select {
		case <-r.ended:
			r.serving--
		case <-t.C:
			return false
		}
	}
	return true
}

// finish waits for the unread output, closes the pipes, and returns when the goroutines have ended.
// A process that left the group may hold the pipes open for ever. Its later output is not read, and
// it gets no more input.
func (r *running) finish() {
	if !r.wait(lastRead) {
		for _, f := range r.pipes {
			if f != nil && f.SetDeadline(time.Unix(1, 0)) != nil {
				f.Close() // files without deadlines: closing ends a read or write too
			}
		}
		for ; r.serving > 0; r.serving-- {
			<-r.ended
		}
	}
	closeAll(r.pipes)
}
