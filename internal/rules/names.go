package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/plan"
)

// mostNodeName is the largest number of characters of a node's name. Host names on Linux have at most
// 64, and tables have to hold the name.
const mostNodeName = 128

// CheckNodeName returns why a text cannot name a node. Names stand in lists, in paths of the API and
// on terminals, by themselves.
func CheckNodeName(name string) error {
	wrong := ""
	switch {
	case name == "":
		return errors.New("a node's name is empty; if it comes from a variable, that is not set")
	case cells.Clean(name) != name:
		wrong = "has a control character, or another one that cannot be shown"
	case strings.TrimSpace(name) != name:
		wrong = "begins or ends with a space"
	case strings.ContainsAny(name, ",/"):
		wrong = "has a comma or a slash"
	case utf8.RuneCountInString(name) > mostNodeName:
		return fmt.Errorf("the name of a node is longer than %d characters; take a shorter one, as that of its host", mostNodeName)
	default:
		return nil
	}
	return fmt.Errorf("%q cannot name a node: it %s; take a name as a host has", name, wrong)
}

var pluginSyntax = regexp.MustCompile(`^[\w:]+$`)

// CheckPluginName returns why a plugin cannot have the name, nil if it can. The rule is Disbatch's, [\w:]+ in
// ASCII: queues name plugins, and other nodes on the database load what a queue names. Queues that exist are
// read by any name.
func CheckPluginName(name string) error {
	if !pluginSyntax.MatchString(name) {
		return errors.New("a name has only letters, digits, _ and :, as in copy_mail or Disbatch::Plugin::Demo")
	}
	return nil
}

// The patterns of the variables that a task may set, and of those that it may not.
const (
	VariablePattern = `^[A-Za-z_][A-Za-z0-9_]*$`
	OwnPattern      = "^" + ownVariables
	ownVariables    = "SLUICE_" // Sluice gives commands variables of such names itself
)

var variableSyntax = regexp.MustCompile(VariablePattern)

// CheckVariable returns why a task cannot set an environment variable of that name.
func CheckVariable(name string) error {
	if strings.HasPrefix(name, ownVariables) {
		return fmt.Errorf("%s: names that begin with %s are Sluice's own; take another", name, ownVariables)
	}
	return CheckVariableSyntax(name)
}

// CheckVariableSyntax returns why a text is not the name of an environment variable.
func CheckVariableSyntax(name string) error {
	if !variableSyntax.MatchString(name) {
		return fmt.Errorf("%q cannot be a variable's name; it has letters, digits and _, and begins with no digit", name)
	}
	return nil
}

// CheckNUL returns why a text cannot be an argument, a variable or a folder of a process: all of them
// end at a NUL byte. what names the text.
func CheckNUL(what, text string) error {
	if strings.Contains(text, "\x00") {
		return fmt.Errorf("%s has a NUL byte, and no process can be given one; remove it", what)
	}
	return nil
}

// CheckNULIn is CheckNUL for all texts in a value of JSON. It adds the places of arguments and variables
// to what. A text that is an expression in part is checked as it is.
func CheckNULIn(what string, value json.RawMessage) error {
	if !bytes.Contains(value, []byte(`\u0000`)) {
		return nil // JSON has no other NUL
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return checkNULIn(what, v)
}

func checkNULIn(what string, v any) (err error) {
	switch v := v.(type) {
	case string:
		return CheckNUL(what, v)
	case []any:
		for i := 0; i < len(v) && err == nil; i++ {
			err = checkNULIn(fmt.Sprintf("%s: argument %d", what, i), v[i])
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err == nil {
				err = checkNULIn(what+" "+key, v[key])
			}
		}
	}
	return err
}

// ParseCount reads a number of attempts, rescues or threads: a whole one from 1 to most. name is its key in
// a plan file.
func ParseCount(name, text string, most int64) (int, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case n > most: // also where the error is that it is out of range
		return 0, fmt.Errorf("%s is %s; it is at most %d", name, text, most)
	case err != nil || n < 1:
		if most < math.MaxInt32 {
			return 0, fmt.Errorf("%s is %s; it is a whole number from 1 to %d", name, text, most)
		}
		return 0, fmt.Errorf("%s is %s; it is a whole number of at least 1", name, text)
	}
	return int(n), nil
}

// CheckLimit returns why a person cannot let so many tasks run at once: those of a queue, those of a queue on
// one node, or those of a node. name is the key of the limit. Databases may hold other limits.
func CheckLimit(name string, n int) error {
	if n < 0 {
		return fmt.Errorf("%s is %d; it is 0 to %d: raise it, or set no limit", name, n, plan.MaxThreads)
	}
	if n > plan.MaxThreads {
		return fmt.Errorf("%s is %d; it is at most %d: lower it, or set no limit", name, n, plan.MaxThreads)
	}
	return nil
}

// mostDays is the longest period of OSTE.
const mostDays = 36_500

// CheckNumber returns why the setting with that key, in a request, cannot have a number; nil if it can, or if no rule
// is about the key. text is the number as JSON. The reasons are those of plan files and of flags.
func CheckNumber(key, text string) (err error) {
	n, noInt := strconv.Atoi(text) // what is out of range is the next that an int holds
	switch key {
	case "attempts", "max_rescues":
		if _, err = ParseCount(key, text, math.MaxInt32); key == "max_rescues" && noInt == nil && n == 0 {
			err = ErrNoRescues
		}
		return err
	case "QoSLevel": // of OSTE, as the next ones
		_, err = ParseCount(key, text, plan.MostWeight)
		return err
	case "SuccessPeriod", "DeadLetterPeriod":
		_, err = ParseCount(key, text, mostDays)
		return err
	case "Retries":
		if noInt != nil || n < 0 || n >= math.MaxInt32 {
			err = fmt.Errorf("%s is %s; it is a whole number from 0 to %d", key, text, math.MaxInt32-1)
		}
		return err
	case "weight":
		err = plan.CheckWeight(n)
	case "priority":
		err = plan.CheckPriority(n)
	case "starts":
		if n < 1 { // how many are too many depends on the period
			err = plan.Rate{Starts: n, Per: plan.Duration(time.Second)}.Check()
		}
	case "burst":
		_, err = plan.ParseRate("1/1s,burst=" + strconv.Itoa(n))
	case "threads", "node_threads", "maxthreads":
		err = CheckLimit(key, n)
	default:
		return nil
	}
	if errors.Is(noInt, strconv.ErrSyntax) {
		return fmt.Errorf("%s is %s; it is a whole number", key, text)
	}
	return err
}

// ErrNoRescues is why nobody can let a task be rescued 0 times.
var ErrNoRescues = errors.New("max_rescues is 0; for a task that fails if its node dies, write on_lost: fail")
