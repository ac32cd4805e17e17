package planfile

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/textfile"
	"github.com/seed-1177d267/sluice/plan"
)

func TestWhatIsNoTextIsRefused(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"nothing at all", "", "f:1:1: the file is empty; a plan needs a name and a task, as in {plan: hello, tasks: {greet: {run: echo hello}}}"},
		{"spaces", " \n  \n", "f:1:1: the file is empty; a plan needs a name and a task, as in {plan: hello, tasks: {greet: {run: echo hello}}}"},
		{"UTF-16", "\xff\xfep\x00l\x00", "f:1:1: the file is UTF-16; save it as UTF-8"},
		{"a program", "\x7fELF\x02\x01", "f:1:1: a control character: this is not a plan file, or needs it as an escape in double quotes"},
		{"Latin-1", "plan: x\n# caf\xe9\n", "f:2:6: the file is not UTF-8 text; save it as UTF-8"},
		{"a NUL in the middle", "plan: x\ntasks: \"\x00\"\n", "f:2:9: a control character: this is not a plan file, or needs it as an escape in double quotes"},
		{"a control character of Latin-1", "plan: \u0080\n", "f:1:7: a control character: this is not a plan file, or needs it as an escape in double quotes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("f", []byte(c.file), Options{})
			var errs Errors
			if !errors.As(err, &errs) || len(errs) != 1 {
				t.Fatalf("got %v, want one error", err)
			}
			e := errs[0]
			if got := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestPlacesAreCountedAsEditorsDo(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"lines that end as on Windows", "plan: x\r\ntasks:\r\n  a:\r\n    rum: make\r\n", "f:4:5:|    rum: make|4"},
		{"lines that end as they once did on a Mac", "plan: x\rtasks:\r  a:\r    rum: make\r", "f:4:5:|    rum: make|4"},
		{"characters that end a line only to YAML", "plan: x\n# \u2028# \u0085# \u2029\ntasks:\n  a:\n    rum: make\n", "f:5:5:|    rum: make|4"},
		{"a mark at the beginning", "\uFEFFrum: x\nplan: x\ntasks: {a: {run: make}}\n", "f:1:1:|rum: x|0"},
		{"columns are characters", "plan: x\ntasks:\n  a: {description: \"é😀\", rum: make}\n", "f:3:26:|  a: {description: \"é😀\", rum: make}|25"},
		{"no newline at the end", "plan: x\ntasks: {a: {run: make}}\nrum: x", "f:3:1:|rum: x|0"},
		{"tabs are as wide as the caret's line has them", "plan: x\ntasks:\n  a: {run: make,\trum:\tx}\n", "f:3:18:|  a: {run: make, rum: x}|17"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("f", []byte(c.file), Options{})
			var errs Errors
			if !errors.As(err, &errs) {
				t.Fatalf("got %v, want Errors", err)
			}
			for _, e := range errs {
				if !strings.Contains(e.Message, `"rum"`) {
					continue
				}
				if got := fmt.Sprintf("%s:%d:%d:|%s|%d", e.File, e.Line, e.Column, e.Text, e.Caret); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
				return
			}
			t.Errorf("no error about rum: %v", err)
		})
	}
}

func TestAFileCannotBeABomb(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("plan: x\nparams:\n  a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&laughs, "  a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	laughs.WriteString("tasks: {a: {run: make}}\n")
	deep := "plan: x\ntasks: {a: {run: make}}\nparams: {a: " + strings.Repeat("[", 300) + strings.Repeat("]", 300) + "}\n"
	var stairs strings.Builder
	stairs.WriteString("plan: x\nparams:\n  a0: &a0 []\n")
	for i := 1; i < 300; i++ {
		fmt.Fprintf(&stairs, "  a%d: &a%d [*a%d]\n", i, i, i-1)
	}
	stairs.WriteString("tasks: {a: {run: make}}\n")
	for _, c := range []struct{ name, file, want string }{
		{"a billion laughs", laughs.String(), "the aliases of this file stand for more than 64 MiB; use fewer of them"},
		{"brackets in brackets", deep, "nested too deeply here; a plan file has at most 200 levels"},
		{"aliases in aliases", stairs.String(), "nested too deeply here; a plan file has at most 200 levels"},
		{"a mapping merged into itself", "plan: x\ntasks:\n  a: &a\n    <<: *a\n    run: make\n", "the alias *a stands inside its own anchor, so it would never end; drop it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("f", []byte(c.file), Options{})
			var errs Errors
			if !errors.As(err, &errs) {
				t.Fatalf("got %v, want Errors", err)
			}
			if errs[0].Message != c.want || errs[0].Line < 2 {
				t.Errorf("line %d: %s, want %s", errs[0].Line, errs[0].Message, c.want)
			}
		})
	}
}

func TestWhatAllTasksGetCountsForEachOfThem(t *testing.T) {
	r := newReader("f", []byte("plan: x\nenv: {A: \""+strings.Repeat("x", 1<<20)+"\"}\ntasks:\n  a: {run: make}\n  b: {run: make}\n  c: {run: make}\n"), Options{})
	r.most = 2 << 20
	_, err := r.load()
	if want := "f:5:3: the tasks of this plan have more than 2 MiB of params in all; keep large values in files\n"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestOfManyErrorsTheFirstAreShown(t *testing.T) {
	var file strings.Builder
	file.WriteString("plan: x\ntasks:\n")
	const n = 3000
	for i := range n {
		fmt.Fprintf(&file, "  task-%d: {run: make, needs: [task_%d]}\n", i, i)
	}
	_, err := Parse("f", []byte(file.String()), Options{})
	var errs Errors
	if !errors.As(err, &errs) || len(errs) != n {
		t.Fatalf("got %d errors, want %d", len(errs), n)
	}
	text := err.Error()
	if got := strings.Count(text, "which is not in the plan"); got != textfile.MaxShown {
		t.Errorf("%d errors are shown, want %d", got, textfile.MaxShown)
	}
	if !strings.Contains(text, `needs "task_7", which is not in the plan; add it or drop the need; did you mean "task-`) {
		t.Errorf("no suggestion in %.300s", text)
	}
	if want := fmt.Sprintf("\n… and %d more errors in f", n-textfile.MaxShown); !strings.HasSuffix(text, want) {
		t.Errorf("the text ends in %q, want %q", text[len(text)-50:], want)
	}
}

func TestAPlanOf100000TasksLoads(t *testing.T) {
	const n = 100_000
	var file strings.Builder
	file.WriteString("plan: big\nparams: {domain: example.com}\ntasks:\n")
	for i := range n {
		fmt.Fprintf(&file, "  step-%d:\n    run: ./work %d \"$domain\"\n", i, i)
		if i >= 3 {
			fmt.Fprintf(&file, "    needs: [step-%d, step-%d, step-%d]\n", i-1, i-2, i-3)
		}
	}
	s, err := Parse("big.yaml", []byte(file.String()), Options{Dir: "/work"})
	var errs Errors
	if errors.As(err, &errs) {
		t.Fatalf("%d errors, the first: %v", len(errs), errs[0])
	}
	needs := 0
	for i := range s.Tasks {
		needs += len(s.Tasks[i].Needs)
	}
	if len(s.Tasks) != n || needs != 3*(n-3) {
		t.Errorf("%d tasks and %d needs", len(s.Tasks), needs)
	}
}

func TestAKeyThatIsTooLongIsSaidToBe(t *testing.T) {
	key := strings.Repeat("k", 1025)
	for name, c := range map[string]struct{ file, want string }{
		"in braces":    {"plan: x\ntasks: {a: {run: make, " + key + ": 1}}\n", "plan.yaml:2:24: "},
		"on a line":    {"plan: x\n" + key + ": 1\ntasks: {a: {run: make}}\n", "plan.yaml:2:1: "},
		"at the start": {key + ": 1\nplan: x\n", "plan.yaml:1:1: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("plan.yaml", []byte(c.file), Options{})
			if want := c.want + "this is not YAML: a key has at most 1024 characters\n"; err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got error %v, want %s", err, want)
			}
		})
	}
}

// A file of some hundred bytes may have aliases that expand to 20 MB of params. The reader refuses
// it at the param that exceeds the limit, before it expands the aliases. The limit is on all params
// together, and is as much as a plan keeps.
func TestParamsHaveALimit(t *testing.T) {
	var b strings.Builder
	b.WriteString("plan: p\nparams:\n  a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i <= 6; i++ {
		alias := fmt.Sprintf("*a%d", i-1)
		fmt.Fprintf(&b, "  a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(alias+", ", 9), ", "))
	}
	b.WriteString("tasks: {a: {run: 'true'}}\n")
	const rule = "a plan keeps at most 1048576 (1 MiB): keep large values in files, and let params be their paths"
	one := func(n int) string {
		return "plan: p\nparams: {a: " + strings.Repeat("x", n) + "}\ntasks: {a: {run: 'true'}}\n"
	}
	full := plan.MaxPlanParams - len(`{"a":""}`)
	for _, c := range []struct {
		name, file string
		given      map[string]string
		line       int // 0: it is taken
	}{
		{"aliases", b.String(), nil, 8},
		{"many params", "plan: p\nparams:\n" + strings.Repeat("  b: "+strings.Repeat("x", 1<<19)+"\n", 1) + "  c: " + strings.Repeat("x", 1<<19) + "\ntasks: {a: {run: 'true'}}\n", nil, 4},
		{"one more than a plan keeps", one(full + 1), nil, 2},
		{"given", one(1), map[string]string{"a": strings.Repeat("x", full+1)}, 2},
		{"as much as a plan keeps", one(full), nil, 0},
		{"as much, given", one(1), map[string]string{"a": strings.Repeat("x", full)}, 0},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse("f", []byte(c.file), Options{Params: c.given})
		runtime.ReadMemStats(&after)
		var errs Errors
		switch {
		case c.line == 0 && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.line > 0 && (!errors.As(err, &errs) || len(errs) != 1 || errs[0].Line != c.line || !strings.Contains(errs[0].Message, rule)):
			t.Errorf("%s: %.300v, want the rule at line %d", c.name, err, c.line)
		}
		if used := after.TotalAlloc - before.TotalAlloc; c.name == "aliases" && used > 48<<20 {
			t.Errorf("%s: %d bytes were made", c.name, used)
		}
	}
}
