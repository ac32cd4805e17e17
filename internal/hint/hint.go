// Package hint owns advice: the command that may help now, and the word that a person perhaps
// meant. Each hint has a key, a trigger and a command. The key says which advice it is. A function
// says when it is given. The command is for a person to type. Commands, the REST API and the pages
// give the same hints. Plan files, configuration files and plugins share the words.
package hint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/cells"
)

// A Key names a kind of advice, so that code never compares commands.
type Key string

// The keys of all hints.
const (
	StartNode     Key = "start-node"     // nothing runs a task that is of no plan
	StartPinned   Key = "start-pinned"   // nor one whose queue is pinned to a node that is gone
	ResumePlan    Key = "resume-plan"    // nor a plan
	ReadyPlan     Key = "ready-plan"     // the submission of a plan has not ended
	RetryTask     Key = "retry-task"     // a task was cancelled, or skipped
	RetryBelow    Key = "retry-below"    // a task was kept, and its inputs ran again since
	ReadLog       Key = "read-log"       // a task printed something
	QueueThreads  Key = "queue-threads"  // a queue is paused, or runs as many tasks as it may
	GroupResume   Key = "group-resume"   // a group is paused
	QueueEach     Key = "queue-each"     // a queue lets each node run no more of its tasks
	QueueUnpin    Key = "queue-unpin"    // the nodes that a queue is pinned to do not serve it
	QueueUnignore Key = "queue-unignore" // a queue ignores the nodes that could serve it
	NodeThreads   Key = "node-threads"   // a node runs as many tasks as its maxthreads
	AnswerTask    Key = "answer-task"    // a task waits for an approval
	ShowBalance   Key = "show-balance"   // the balance document sets the threads of a queue
)

// A Hint is one piece of advice. The zero Hint is none.
type Hint struct {
	Key   Key
	Do    []string // the words of the command, without the name of the program
	Queue string   // the queue that the advice is about; "" if it is about none
}

// Balance shows what sets the threads of a queue.
func Balance() Hint { return Hint{Key: ShowBalance, Do: []string{"balance", "show"}} }

// NeedsStore reports whether a command works on a store itself, and cannot ask a server.
func NeedsStore(words []string) bool {
	if slices.Contains([]string{"worker", "runner", "serve"}, words[0]) {
		return true
	}
	return len(words) > 1 && words[0] == "plan" && (words[1] == "run" || slices.Contains(words, "--run"))
}

// Line is a command as a person types it in a shell.
func Line(words []string) string {
	line := "sluice"
	for _, w := range words {
		line += " " + Quoted(w)
	}
	return line
}

// Quoted writes a word for a shell. Characters that a terminal would obey become escapes, which
// bash, ksh and zsh read.
func Quoted(word string) string {
	if cells.Clean(word) != word {
		var b strings.Builder
		for _, c := range []byte(word) {
			switch {
			case c == '\'' || c == '\\':
				b.WriteByte('\\')
				b.WriteByte(c)
			case c < ' ' || c > '~':
				fmt.Fprintf(&b, `\x%02x`, c)
			default:
				b.WriteByte(c)
			}
		}
		return "$'" + b.String() + "'"
	}
	if word == "" || strings.ContainsAny(word, " \t\n\"'\\$&;|<>()*?[]{}!`~") {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}
