package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// roles are what this very program is as a process that a scenario starts, by its first argument. A
// role gets its part, which is not an argument because a URI may have a password. It prepares, and
// returns what does its work until ctx ends and reports it.
var roles = map[string]func(ctx context.Context, part []byte) (work func(context.Context) (report any)){busyWord: busyMain, memberWord: memberMain}

// childMain is this program as such a process; it returns the exit code. It reads its part, says
// that it is ready and waits for a line. Then it works until the next line or the end of its input,
// and reports.
func childMain(ctx context.Context, word string, stdin io.Reader, stdout, stderr io.Writer) int {
	in := bufio.NewReader(stdin)
	err := try(func() {
		work := roles[word](ctx, must(in.ReadBytes('\n')))
		fmt.Fprintln(stdout, "ready")
		_ = must(in.ReadString('\n'))
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		go func() { // it ends with the input, which nothing else reads
			_, _ = in.ReadString('\n') // a parent that is gone says the same
			stop()
		}()
		check(json.NewEncoder(stdout).Encode(work(ctx)))
	})
	if err != nil {
		fmt.Fprintf(stderr, "bench: %s: %v\n", word, err)
		return 1
	}
	return 0
}

// A crew is such processes as their parent sees them.
type crew []*process

// startCrew starts a process for each part.
func startCrew[T any](ctx context.Context, word string, parts []T) (c crew) {
	for _, part := range parts {
		p := startWith(ctx, "", func(p *process) {
			p.Stderr = os.Stderr
			p.in, p.out = must(p.StdinPipe()), bufio.NewReader(must(p.StdoutPipe()))
		}, must(os.Executable()), word)
		c = append(c, p)
		check(json.NewEncoder(p.in).Encode(part))
	}
	return c
}

// ready waits until each is ready.
func (c crew) ready() {
	for _, p := range c {
		_ = p.line()
	}
}

// tell writes a line to each. The first one lets them begin, and the second one tells them to end.
func (c crew) tell() {
	for _, p := range c {
		_, _ = io.WriteString(p.in, "go\n") // one that is gone does not report, which is an error
	}
}

// reports waits for what each says at its end.
func reports[T any](c crew) []T {
	all := make([]T, len(c))
	for i, p := range c {
		check(json.Unmarshal([]byte(p.line()), &all[i]))
	}
	return all
}

// stop waits for those that have not been killed.
func (c crew) stop() {
	for _, p := range c {
		p.stop()
	}
}
