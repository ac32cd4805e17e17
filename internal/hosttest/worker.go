// Package hosttest owns the conformance cases of the Disco worker protocol: what a host has to do
// with each message, with each wrong one, and with each way in which a worker may end. A test plays
// the cases over pipes, with a worker of its own, or through a command that starts the worker.
package hosttest

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// A Process is what a worker does to itself beside its streams.
type Process interface {
	Exit(code int) // ends the worker; it does not return
	Kill()         // has SIGKILL end the worker; it does not return
	Stay()         // waits until the worker is killed; it does not return
	IgnoreTerm()   // ignores SIGTERM from now on
	Child()        // leaves a child behind that holds the streams open
	Pause(d time.Duration)
	WriteFile(name, text string) // in the working directory
}

// A Worker plays one case. Its methods end it when a reply is not the wanted one.
type Worker struct {
	Process
	In     io.Reader // the replies
	Out    io.Writer // the messages
	Failed func(text string)
	Within time.Duration // that the host gives a message
}

// Send sends a message with a right frame.
func (w *Worker) Send(name, body string) { w.Raw(Frame(name, body)) }

// Frame returns a message with a right frame.
func Frame(name, body string) string { return name + " " + strconv.Itoa(len(body)) + " " + body + "\n" }

// Raw writes what may be no message.
func (w *Worker) Raw(text string) {
	if _, err := io.WriteString(w.Out, text); err != nil {
		w.fail("write %.40q: %v", text, err)
	}
}

// Want reads exactly this reply.
func (w *Worker) Want(reply string) {
	got := make([]byte, len(reply))
	n, err := io.ReadFull(w.In, got)
	if string(got[:n]) != reply {
		w.fail("the reply is %.300q (%v), want %.300q", got[:n], err, reply)
	}
}

// Next reads one reply of any kind.
func (w *Worker) Next() (name, body string) {
	var words [2]string
	for i := range words {
		var b [1]byte
		for {
			if _, err := io.ReadFull(w.In, b[:]); err != nil {
				w.fail("read a reply: %v", err)
			}
			if b[0] == ' ' {
				break
			}
			words[i] += string(b[:])
		}
	}
	n, err := strconv.Atoi(words[1])
	if err != nil {
		w.fail("the length of a reply is %q", words[1])
	}
	text := make([]byte, n+1)
	if _, err := io.ReadFull(w.In, text); err != nil || text[n] != '\n' {
		w.fail("the body of a reply of %d bytes: %v", n, err)
	}
	if i := bytes.IndexFunc(text[:n], func(r rune) bool { return r < ' ' || r > '~' }); i >= 0 {
		w.fail("a reply is not pure ASCII: %q", text[i:min(n, i+20)])
	}
	return words[0], string(text[:n])
}

// Ask sends a message and wants the reply.
func (w *Worker) Ask(name, body, reply string) {
	w.Send(name, body)
	w.Want(reply)
}

// Hello announces the worker.
func (w *Worker) Hello() { w.Ask("WORKER", hello, ok) }

// Done says that the worker is done, and stays.
func (w *Worker) Done() {
	w.Ask("DONE", `""`, ok)
	w.Stay()
}

// More asks the test for the next of the later lines of the inputs.
func (w *Worker) More() { w.Ask("MSG", strconv.Quote(More), ok) }

// More is the text of a MSG that asks for the next of the later lines.
const More = "hosttest: more"

func (w *Worker) fail(format string, args ...any) {
	w.Failed(fmt.Sprintf(format, args...))
	w.Exit(99)
}

// Fail ends the worker, which was answered wrongly.
func (w *Worker) Fail(text string) { w.fail("%s", text) }

const (
	ok    = "OK 4 \"ok\"\n"
	hello = `{"version":"1.1","pid":4711}`
)

func input(body string) string { return Frame("INPUT", body) }

func retry(body string) string { return Frame("RETRY", body) }

// repeat returns a text of n bytes.
func repeat(n int) string { return strings.Repeat("x", n) }
