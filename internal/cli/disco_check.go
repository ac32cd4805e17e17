package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins/disco"
	"github.com/seed-1177d267/sluice/plugins/disco/host"
)

func discoCheck(a *app) *cobra.Command {
	s := &discoSettings{attempts: 1, group: "0,"}
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "check WORKER",
		Short: "Check that a worker copes with all that hosts do",
		Long: "Check that a worker of Disco copes with all that hosts do. The command plays a " +
			"session of its own for each of these: many inputs, none, replicas that are gone, " +
			"inputs that come later, replicas that come later, a large reply, and late replies. " +
			"The inputs are small texts, served by HTTP on 127.0.0.1. For each session the " +
			"command prints whether the worker did well, and if not, what was wrong, with the " +
			"last messages. The exit status is 1 if it did not.",
		Example: "  sluice disco check ./worker\n" +
			"  sluice disco check ./worker --stage reduce --env PYTHONPATH=lib",
	}
	f := cmd.Flags()
	f.StringVar(&s.stage, "stage", "map", "the `NAME` of the stage")
	f.StringArrayVar(&s.env, "env", nil, "a variable of the worker, `NAME=VALUE`; may be repeated")
	f.StringVar(&s.jobFile, "jobfile", "", "the job pack, a `FILE` (default: an empty one)")
	spanFlag(cmd, &timeout, "timeout", time.Minute, "how long one session may take")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.checkDisco(cmd.Context(), args[0], s, timeout) }
	return cmd
}

// A discoSession is one thing that hosts do.
type discoSession struct {
	name   string
	inputs func(served *discoTexts) *host.List                  // the list at the beginning
	later  func(served *discoTexts, l *host.List, reply string) // is told of each reply
	delay  time.Duration                                        // of each reply
}

var discoSessions = []discoSession{
	{name: "one input", inputs: func(t *discoTexts) *host.List { return host.NewList(t.input("one")) }},
	{name: "many inputs", inputs: func(t *discoTexts) *host.List {
		l := &host.List{}
		for i := range 100 {
			l.Add(t.input(fmt.Sprintf("many-%d", i)))
		}
		l.Complete()
		return l
	}},
	{name: "no input", inputs: func(*discoTexts) *host.List { return host.NewList() }},
	{name: "a replica that is gone", inputs: func(t *discoTexts) *host.List {
		in := t.input("there")
		in.Replicas = append([]string{t.gone("first")}, in.Replicas...)
		return host.NewList(in)
	}},
	{name: "inputs that come later (more)", inputs: func(t *discoTexts) *host.List {
		l := &host.List{}
		l.Add(t.input("early"))
		return l
	}, later: func(t *discoTexts, l *host.List, reply string) {
		list, complete, _ := l.Inputs()
		switch {
		case reply != "INPUT" || complete:
		case len(list) == 1:
			l.Add(t.input("late"))
		default:
			l.Complete()
		}
	}},
	{name: "a replica that comes later (WAIT)", inputs: func(t *discoTexts) *host.List {
		return host.NewList(host.Input{Replicas: []string{t.gone("busy")}, Busy: true})
	}, later: func(t *discoTexts, l *host.List, reply string) {
		if reply == "WAIT" {
			_ = l.AddReplicas(0, t.input("made").Replicas)
		}
	}},
	{name: "a large reply", inputs: func(t *discoTexts) *host.List {
		in := t.input("large")
		for len(in.Replicas) < 2000 {
			in.Replicas = append(in.Replicas, in.Replicas[0])
		}
		return host.NewList(in)
	}},
	{name: "late replies", inputs: func(t *discoTexts) *host.List { return host.NewList(t.input("slow")) }, delay: 300 * time.Millisecond},
}

// checkDisco plays all sessions.
func (a *app) checkDisco(ctx context.Context, worker string, s *discoSettings, timeout time.Duration) error {
	attempt, _, err := s.attempt(worker)
	if err != nil {
		return err
	}
	data, err := a.discoData(ctx)
	if err != nil {
		return err
	}
	texts, stop, err := serveDiscoTexts()
	if err != nil {
		return err
	}
	defer stop()
	stopped, release := a.stoppable(ctx, true)
	defer release()
	attempt.Hurry, attempt.Times, attempt.Grace, attempt.Number = stopped.again, a.Disco.Times, a.Disco.Grace, 1
	failed := 0
	for i := range discoSessions {
		wrong, bytes, err := a.playDisco(stopped.ctx, &discoSessions[i], attempt, data, texts, timeout)
		switch {
		case stopped.ctx.Err() != nil:
			return errInterrupted
		case err != nil:
			return asUsage(err)
		case wrong == "":
			if err := a.say("ok      %s", discoSessions[i].name); err != nil {
				return err
			}
			continue
		}
		failed++
		if err := a.say("WRONG   %s: %s\n%s", discoSessions[i].name, cells.Tame(wrong), bytes); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("the worker did %d of %d sessions wrong", failed, len(discoSessions))
	}
	return nil
}

// playDisco plays one session. It returns what the worker did wrong, and the last messages.
func (a *app) playDisco(ctx context.Context, s *discoSession, attempt *disco.Attempt, data *disco.Data, texts *discoTexts, timeout time.Duration) (wrong, messages string, err error) {
	home, err := data.Open(disco.JobName(filepath.Base(attempt.Worker), plan.NewID(time.Now()).String()), "")
	if err != nil {
		return "", "", err
	}
	defer home.Close()
	texts.forget()
	list := s.inputs(texts)
	tape := &discoTape{delay: s.delay}
	tape.told = func(reply string) {
		if s.later != nil {
			s.later(texts, list, reply)
		}
	}
	attempt.Home, attempt.Inputs = home, list
	attempt.Between = func(c host.Conn) host.Conn { tape.Conn = c; return tape }
	limited, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it was not done after %v", timeout))
	defer cancel()
	o, err := attempt.Run(limited)
	if err != nil {
		return "", "", err
	}
	switch unread := texts.unread(); {
	case o.End != host.Done:
		wrong = fmt.Sprintf("it ended as %v: %s", o.End, o.Detail)
	case !bytes.HasPrefix(tape.first, []byte("WORKER ")):
		wrong = "its first message is not WORKER"
	case len(unread) > 0:
		wrong = "it was done, and had not read " + strings.Join(unread, ", ")
	}
	return wrong, tape.String(), nil
}

// discoTexts are the inputs of the sessions, served by HTTP.
type discoTexts struct {
	url string

	mu   sync.Mutex
	left map[string]bool // what the worker has to read
}

func serveDiscoTexts() (t *discoTexts, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	t = &discoTexts{url: "http://" + l.Addr().String() + "/"}
	server := &http.Server{Handler: t, ReadHeaderTimeout: time.Minute}
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(l) })
	return t, func() { _ = server.Close(); wg.Wait() }, nil
}

// ServeHTTP implements http.Handler.
func (t *discoTexts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if strings.HasPrefix(name, "gone/") {
		http.NotFound(w, r)
		return
	}
	t.mu.Lock()
	delete(t.left, t.url+name)
	t.mu.Unlock()
	fmt.Fprintf(w, "the quick brown fox\njumps over the lazy dog %s\n", name)
}

// input returns an input that the worker has to read.
func (t *discoTexts) input(name string) host.Input {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left[t.url+name] = true
	return host.Input{Replicas: []string{t.url + name}}
}

func (t *discoTexts) gone(name string) string { return t.url + "gone/" + name }

func (t *discoTexts) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = map[string]bool{}
}

// unread returns what the worker had to read and did not, at most three of it.
func (t *discoTexts) unread() (urls []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for url := range t.left {
		if len(urls) < 3 {
			urls = append(urls, url)
		}
	}
	return urls
}

// A discoTape is what a session speaks through. It keeps the last of what both sides said.
type discoTape struct {
	host.Conn
	delay time.Duration
	told  func(reply string)
	first []byte // of the worker
	lines []string
}

// mostTape is how many writes and reads a tape keeps, and how much of each.
const (
	mostTape     = 10
	mostTapeText = 300
)

func (t *discoTape) keep(who string, b []byte) {
	line := fmt.Sprintf("        %s %q", who, b[:min(len(b), mostTapeText)])
	if len(b) > mostTapeText {
		line += fmt.Sprintf("… (%d bytes)", len(b))
	}
	if t.lines = append(t.lines, line); len(t.lines) > mostTape {
		t.lines = t.lines[1:]
	}
}

// Read implements host.Conn. Workers write a message at once, and wait for its reply.
func (t *discoTape) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	if n > 0 {
		t.keep("worker:", p[:n])
		if t.first == nil {
			t.first = bytes.Clone(p[:min(n, 10)])
		}
	}
	return n, err
}

// Write implements host.Conn.
func (t *discoTape) Write(p []byte) (int, error) {
	if t.delay > 0 {
		select {
		case <-time.After(t.delay):
		case <-t.Conn.Exited():
			return 0, errors.New("the worker has exited")
		}
	}
	t.keep("host:  ", p)
	n, err := t.Conn.Write(p)
	name, _, _ := bytes.Cut(p, []byte(" "))
	t.told(string(name))
	return n, err
}

func (t *discoTape) String() string { return strings.Join(t.lines, "\n") }
