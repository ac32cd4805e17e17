// Package disbatchdemo is Disbatch's own demonstration, Disbatch::Plugin::Demo, which its
// documents, its tests and its monitors use. A task runs its commands, which print, fail, or print
// very much.
//
// Its params. Others, as user1 and user2, matter only for its report:
//
//	commands  a text, each character of which is a command; * stands for abc, and what is no command is left out:
//	          a        a line on standard output
//	          b        a line on standard error, which counts as an error of the report
//	          1 7 8 e  1, 7, 8 and 15 MiB on standard output
//	          A B C E  the same on standard error
//	          c        it fails, with status 2
//	counter   any value, for the report
//	noreport  true: it writes no report
//
// The order of the characters does not matter: commands are done in the order above.
//
// Its report is a document with commands, counter, task_id, queue_id, version, started and
// completed (seconds since 1970), errors (a number) and status (SUCCESS or FAILED). A task that
// failed adds error. The params user1, user2 and migration are in it if they are given.
package disbatchdemo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// Name is what queues call the plugin.
const Name = "Disbatch::Plugin::Demo"

// version is that of the Disbatch whose plugin this does the work of.
const version = "4.103"

// Plugin is the plugin.
var Plugin = plugins.Func(run)

// floods are the commands that print much.
var floods = []struct {
	command rune
	stream  plan.Stream
	mib     int
}{
	{'1', plan.Stdout, 1}, {'7', plan.Stdout, 7}, {'8', plan.Stdout, 8}, {'e', plan.Stdout, 15},
	{'A', plan.Stderr, 1}, {'B', plan.Stderr, 7}, {'C', plan.Stderr, 8}, {'E', plan.Stderr, 15},
}

func run(ctx context.Context, t *plugins.Task) (any, error) {
	var params map[string]json.RawMessage
	if err := json.Unmarshal(t.Params, &params); err != nil {
		return nil, fmt.Errorf("params of %s: %w", Name, err)
	}
	commands, err := readCommands(params["commands"])
	if err != nil {
		return nil, fmt.Errorf("params of %s: %w", Name, err)
	}
	report := map[string]any{
		"commands": commands, "counter": params["counter"], "version": version, "started": time.Now().Unix(),
		"task_id": objectID(t.ID.ID), "queue_id": objectID(t.QueueID.ID), "status": "SUCCESS",
	}
	for _, name := range []string{"user1", "user2", "migration"} {
		if raw, given := params[name]; given {
			report[name] = raw
		}
	}
	wanted := func(command rune) bool { return strings.ContainsRune(commands, command) }
	mistakes := 0
	if wanted('a') {
		t.Log.Append(plan.Stdout, "command a: one line on standard output")
	}
	if wanted('b') {
		t.Log.Append(plan.Stderr, "command b: one line on standard error")
		mistakes++
	}
	for _, f := range floods {
		if !wanted(f.command) {
			continue
		}
		if err := flood(ctx, t.Log, f.stream, f.command, f.mib); err != nil {
			return nil, err
		}
	}
	var failure error
	if wanted('c') {
		failure = errors.New("command c: it was told to fail")
		t.Log.Append(plan.Stderr, failure.Error())
		mistakes++
		report["status"], report["error"] = "FAILED", failure.Error()
	}
	report["errors"], report["completed"] = mistakes, time.Now().Unix()
	if !truth(params["noreport"]) {
		if err := t.Report(ctx, report); err != nil {
			return nil, err
		}
	}
	return nil, failure
}

// flood prints so many MiB of a character, in lines of a KiB.
func flood(ctx context.Context, log *plugins.Log, s plan.Stream, c rune, mib int) error {
	const lineBytes, linesOfMiB = 1 << 10, 1 << 10
	line := strings.Repeat(string(c), lineBytes-1) + "\n"
	for range mib {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for range linesOfMiB {
			log.Append(s, line)
		}
	}
	return nil
}

// readCommands returns the commands; a single one may have been written as a number.
func readCommands(raw json.RawMessage) (commands string, err error) {
	switch {
	case raw == nil || bytes.Equal(raw, []byte("null")):
		return "", nil
	case raw[0] >= '0' && raw[0] <= '9':
		commands = string(raw)
	case json.Unmarshal(raw, &commands) != nil:
		return "", fmt.Errorf("commands is %s; write a text with a character for each command, as in \"abc\", or \"*\"", raw)
	}
	if commands == "*" {
		commands = "abc"
	}
	return commands, nil
}

// truth is whether Perl takes a value to be true.
func truth(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", "0", `""`, `"0"`:
		return false
	}
	return true
}

// objectID is an id as MongoDB's Extended JSON has it.
func objectID(id plan.ID) any { return map[string]string{"$oid": id.String()} }
