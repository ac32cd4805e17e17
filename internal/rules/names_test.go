package rules_test

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
)

func TestNamesAndCountsThatAreRefused(t *testing.T) {
	count := func(text string) error { _, err := rules.ParseCount("attempts", text, math.MaxInt32); return err }
	limit := func(text string) error { n, _ := strconv.Atoi(text); return rules.CheckLimit("threads", n) }
	number := func(setting string) error {
		key, text, _ := strings.Cut(setting, "=")
		return rules.CheckNumber(key, text)
	}
	nul := func(text string) error { return rules.CheckNUL("run", text) }
	nulIn := func(text string) error { return rules.CheckNULIn("run", json.RawMessage(text)) }
	for _, c := range []struct {
		check func(string) error
		text  string
		want  string // "": it is taken
	}{
		{rules.CheckNodeName, "mx-1.example.com.4711", ""},
		{rules.CheckNodeName, "", "is empty; if it comes from a variable, that is not set"},
		{rules.CheckNodeName, "a,b", "it has a comma or a slash; take a name as a host has"},
		{rules.CheckNodeName, " a", "begins or ends with a space"},
		{rules.CheckNodeName, "a\x1b[2J", "has a control character"},
		{rules.CheckNodeName, strings.Repeat("x", 128), ""},
		{rules.CheckNodeName, strings.Repeat("x", 129), "longer than 128 characters; take a shorter one"},
		{rules.CheckPluginName, "Disbatch::Plugin::Demo_2", ""},
		{rules.CheckPluginName, "", "a name has only letters, digits, _ and :, as in copy_mail or"},
		{rules.CheckPluginName, "a.b", "a name has only letters, digits, _ and :"},
		{rules.CheckPluginName, "copy-mail", "a name has only letters, digits, _ and :"},
		{rules.CheckPluginName, "é", "a name has only letters, digits, _ and :"},
		{rules.CheckVariable, "PATH_2", ""},
		{rules.CheckVariable, "", "cannot be a variable's name; it has letters, digits and _"},
		{rules.CheckVariable, "A=B", "cannot be a variable's name; it has letters, digits and _"},
		{rules.CheckVariable, "2A", "begins with no digit"},
		{rules.CheckVariable, "SLUICE_X", "SLUICE_X: names that begin with SLUICE_ are Sluice's own; take another"},
		{rules.CheckVariableSyntax, "SLUICE_X", ""},
		{count, "1", ""},
		{count, "2147483647", ""},
		{count, "0", "attempts is 0; it is a whole number of at least 1"},
		{count, "-1", "attempts is -1; it is a whole number of at least 1"},
		{count, "three", "attempts is three; it is a whole number of at least 1"},
		{count, "2147483648", "attempts is 2147483648; it is at most 2147483647"},
		{count, strings.Repeat("9", 30), "; it is at most 2147483647"},
		{nul, "make", ""},
		{nul, "a\x00b", "run has a NUL byte, and no process can be given one; remove it"},
		{nulIn, `"a\\u0000b"`, ""}, // a backslash
		{nulIn, `["a", 5, null, "b"]`, ""},
		{nulIn, `"a\u0000b"`, "run has a NUL byte, and no process"},
		{nulIn, `["a", "${{ item }}\u0000"]`, "run: argument 1 has a NUL byte"},
		{nulIn, `{"A": "a", "B": {"from_file": "\u0000"}}`, "run B from_file has a NUL byte"},
		{limit, "0", ""},
		{limit, "1000000", ""},
		{limit, "-1", "threads is -1; it is 0 to 1000000: raise it, or set no limit"},
		{number, "weight=1000", ""},
		{number, "weight=0", "weight is 0; it is 1 to 1000 (to let nothing start, pause the group, or give the queue 0 threads)"},
		{number, `weight="5"`, `weight is "5"; it is a whole number`},
		{number, "weight=1" + strings.Repeat("0", 30), "; it is 1 to 1000 ("},
		{number, "starts=20000", ""}, // a day
		{number, "starts=0", "starts is 0; at least 1 task starts in a period"},
		{number, "burst=0", "burst is 0; it is 1 to 1000000"},
		{number, "attempts=0", "attempts is 0; it is a whole number of at least 1"},
		{number, "attempts=1.5", "attempts is 1.5; it is a whole number of at least 1"},
		{number, "max_rescues=0", "max_rescues is 0; for a task that fails if its node dies, write on_lost: fail"},
		{number, "max_rescues=-1", "max_rescues is -1; it is a whole number of at least 1"},
		{number, "priority=101", "priority is 101; it is 1 to 100, and 10 is usual"},
		{number, "node_threads=-1", "node_threads is -1; it is 0 to 1000000: raise it, or set no limit"},
		{number, "QoSLevel=0", "QoSLevel is 0; it is a whole number from 1 to 1000"},
		{number, "QoSLevel=1001", "QoSLevel is 1001; it is at most 1000"},
		{number, "SuccessPeriod=-1", "SuccessPeriod is -1; it is a whole number from 1 to 36500"},
		{number, "DeadLetterPeriod=36501", "DeadLetterPeriod is 36501; it is at most 36500"},
		{number, "Retries=-1", "Retries is -1; it is a whole number from 0 to 2147483646"},
		{number, "Retries=2147483647", "Retries is 2147483647; it is a whole number from 0 to 2147483646"},
		{number, "Retries=0", ""},
		{number, "other=-1", ""},
		{limit, "1000001", "threads is 1000001; it is at most 1000000: lower it, or set no limit"},
	} {
		if err := c.check(c.text); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %v, want %q", c.text, err, c.want)
		}
	}
}
