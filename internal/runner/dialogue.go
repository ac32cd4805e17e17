package runner

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// ErrOver is why a command was stopped whose dialogue had ended before the command did.
var ErrOver = errors.New("the dialogue with it is over")

// mostLeft is how much is read of what a command wrote before its end. No pipe holds more, unless a
// process that left the group continues to write.
const mostLeft = 1 << 20

// A Dialogue is our end of the streams of a command. Read reads what the command writes to its
// standard output and its standard error, in one order. Write writes to its standard input. Any
// number of goroutines may use it.
type Dialogue struct {
	in, out *os.File      // its standard input, and the other two streams
	exited  chan struct{} // closed once the command's own process has exited

	mu   sync.Mutex
	over bool // the command and its group have ended
	left int  // how much may be read then
}

// Converse runs a command as Run does, and speaks with it. talk runs in a goroutine of its own, and
// Converse returns after it. If talk returns before the command has exited, Converse stops the
// command, and Stopped is ErrOver. A command that exits first loses what is left of its group at
// once. talk can still read what they all wrote. Stdin and Linger of the command do not matter.
func Converse(ctx context.Context, cmd Command, talk func(*Dialogue)) (Result, error) {
	if ctx.Err() != nil {
		return Result{Code: -1, Stopped: context.Cause(ctx)}, nil
	}
	d, p, err := call(&cmd)
	if err != nil {
		return Result{}, err
	}
	defer d.in.Close()
	defer d.out.Close()
	result := Result{Started: time.Now()}
	w, over := observe(ctx, p, &cmd)
	defer over()
	talked := make(chan struct{})
	go func() {
		defer close(talked)
		talk(d)
		select {
		case <-d.exited:
		default:
			w.stop(ErrOver)
		}
	}()
	p.await()
	close(d.exited)
	err = w.conclude(&result, func() {})
	d.end()
	<-talked
	return result, err
}

// call starts a command with its two pipes.
func call(cmd *Command) (*Dialogue, *process, error) {
	program, err := lookup(cmd)
	if err != nil {
		return nil, nil, err
	}
	d := &Dialogue{exited: make(chan struct{})}
	var theirs, ours [3]*os.File
	theirs[0], ours[0], err = os.Pipe()
	if err == nil {
		ours[1], theirs[1], err = pipe()
	}
	var p *process
	if err == nil {
		theirs[2] = theirs[1]
		p, err = start(cmd, program, theirs)
		theirs[2] = nil
	}
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return nil, nil, notStarted(cmd, program, err)
	}
	d.in, d.out = ours[0], ours[1]
	return d, p, nil
}

// Exited returns a channel that is closed once the command's own process has exited.
func (d *Dialogue) Exited() <-chan struct{} { return d.exited }

// Read implements io.Reader. It returns io.EOF when no process can write any more, and soon after the
// end of the command if one that left its group still can.
func (d *Dialogue) Read(p []byte) (int, error) {
	if !d.hasEnded() {
		n, err := d.out.Read(p)
		if err == nil || !d.hasEnded() {
			return n, err
		}
	}
	_ = d.out.SetReadDeadline(time.Now().Add(lastRead))
	n, err := d.out.Read(p)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left -= n; d.left < 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		return n, io.EOF
	}
	return n, err
}

func (d *Dialogue) hasEnded() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

// Write implements io.Writer.
func (d *Dialogue) Write(p []byte) (int, error) { return d.in.Write(p) }

// SetReadDeadline is as of an os.File. After the end of the command reads have deadlines of their own.
func (d *Dialogue) SetReadDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return nil
	}
	return d.out.SetReadDeadline(t)
}

// SetWriteDeadline is as of an os.File.
func (d *Dialogue) SetWriteDeadline(t time.Time) error { return d.in.SetWriteDeadline(t) }

// end lets talk read what is left, and no more: nobody reads what it writes.
func (d *Dialogue) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over, d.left = true, mostLeft
	_ = d.out.SetReadDeadline(time.Now().Add(lastRead)) // without deadlines, closing the pipe ends reading
	_ = d.in.SetWriteDeadline(time.Unix(1, 0))
}
