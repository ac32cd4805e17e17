package balance_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/internal/balance"
	"github.com/seed-1177d267/sluice/plan"
)

func parsed(t testing.TB, document string) *balance.Document {
	t.Helper()
	b, err := balance.Parse(json.RawMessage(document))
	if err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	return b
}

// load is how much a queue has: queued and active.
type load struct{ queued, active int }

// share is what a balance gives the queues of its document, in its order.
func share(b *balance.Document, most int, loads ...load) (threads []int) {
	var queues []plan.Queue
	for _, set := range b.Sets {
		for _, name := range set {
			q := loads[len(queues)]
			queues = append(queues, plan.Queue{Name: name, Queued: q.queued, Active: q.active})
		}
	}
	slices.Reverse(queues) // their own order does not matter
	shares, missing := b.Shares(most, queues)
	if len(missing) > 0 {
		panic(fmt.Sprint(missing))
	}
	for _, s := range shares {
		threads = append(threads, s.Threads)
	}
	return threads
}

func TestABalanceSharesThreads(t *testing.T) {
	const one, three = `[["a"]]`, `[["default"], ["oneoff"], ["single"]]`
	for _, c := range []struct {
		name   string
		queues string
		most   int
		loads  []load
		want   []int
	}{
		{"one queue gets what there is", one, 10, []load{{100, 0}}, []int{10}},
		{"and no more than it wants", one, 10, []load{{3, 2}}, []int{5}},
		{"a queue without work gets nothing", `[["a"], ["b"]]`, 10, []load{{100, 0}, {0, 0}}, []int{10, 0}},
		{"the first set gets what the others leave", three, 10, []load{{100, 0}, {4, 0}, {3, 0}}, []int{3, 4, 3}},
		{"and nothing if they leave nothing", three, 10, []load{{100, 0}, {8, 0}, {3, 0}}, []int{0, 8, 2}},
		{"of the others the earlier one comes first", three, 10, []load{{0, 0}, {100, 0}, {100, 0}}, []int{0, 10, 0}},
		{"nobody runs anything", one, 0, []load{{5, 0}}, []int{0}},
		{"equals get the same", `[["a", "b"]]`, 10, []load{{100, 0}, {100, 0}}, []int{5, 5}},
		{"what one of them does not want goes to the others", `[["a", "b", "c"]]`, 10, []load{{100, 0}, {1, 0}, {100, 0}}, []int{5, 1, 4}},
		{"an empty set is nobody", `[[], ["b"]]`, 10, []load{{100, 0}}, []int{10}},
		{"less may run than does", one, 2, []load{{5, 8}}, []int{2}},

		// Disbatch's balancer continues so when urgent work comes in.
		{"what runs is not stopped, so 4 that come in wait", three, 10, []load{{90, 10}, {4, 0}, {0, 0}}, []int{6, 0, 0}},
		{"2 have ended, and 3 more came", three, 10, []load{{90, 8}, {4, 0}, {3, 0}}, []int{3, 2, 0}},
		{"2 more have ended", three, 10, []load{{90, 6}, {2, 2}, {3, 0}}, []int{3, 4, 0}},
		{"one of the first 4 has ended", three, 10, []load{{90, 6}, {0, 3}, {3, 0}}, []int{4, 3, 1}},
		{"what runs of one counts for its equals too", `[["a", "b"]]`, 10, []load{{92, 8}, {100, 0}}, []int{5, 2}},
	} {
		b := parsed(t, `{"max_tasks": {"* 00:00": 1}, "queues": `+c.queues+`}`)
		if got := share(b, c.most, c.loads...); !slices.Equal(got, c.want) {
			t.Errorf("%s: %d for %v make %v, want %v", c.name, c.most, c.loads, got, c.want)
		}
	}
}

func TestABalanceOfAnything(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2_000 {
		var sets [][]string
		var queues []plan.Queue
		set := map[string]int{}
		for i := range 1 + r.IntN(4) {
			sets = append(sets, []string{})
			for range r.IntN(4) {
				name := fmt.Sprint("q", len(queues))
				sets[i], set[name] = append(sets[i], name), i
				queues = append(queues, plan.Queue{Name: name, Queued: r.IntN(3) * r.IntN(12), Active: r.IntN(2) * r.IntN(8)})
			}
		}
		document, _ := json.Marshal(map[string]any{"queues": sets, "max_tasks": map[string]int{"* 00:00": 1}})
		b := parsed(t, string(document))
		most := r.IntN(30)
		shares, _ := b.Shares(most, queues)
		sum, run, ran, want := 0, 0, 0, 0
		for _, s := range shares {
			q := s.Queue
			sum += s.Threads
			ran += q.Active
			run += max(q.Active, s.Threads)
			want += q.Queued + q.Active
			if s.Threads < 0 || s.Threads > q.Queued+q.Active {
				t.Fatalf("%s has %d queued and %d active, and gets %d", q.Name, q.Queued, q.Active, s.Threads)
			}
		}
		about := func() string { return fmt.Sprintf("%d for %s of %+v make %+v", most, document, queues, shares) }
		if sum > most {
			t.Fatalf("%d threads are more than the most: %s", sum, about())
		}
		if run > max(most, ran) {
			t.Fatalf("%d may run: %s", run, about())
		}
		if run < min(most, want) {
			t.Fatalf("only %d will run: %s", run, about())
		}
		// If a queue that wants more gets none, no later queue gets any for its queued tasks, and
		// none of its equals gets two more.
		priority := func(name string) int { return (set[name] + len(sets) - 1) % len(sets) }
		for _, poor := range shares {
			if poor.Threads >= poor.Queue.Queued+poor.Queue.Active {
				continue
			}
			for _, rich := range shares {
				more := rich.Threads > rich.Queue.Active && rich.Threads > poor.Threads+1 && poor.Threads >= poor.Queue.Active
				if after := priority(rich.Queue.Name) - priority(poor.Queue.Name); after > 0 && rich.Threads > rich.Queue.Active {
					t.Fatalf("%s comes before %s: %s", poor.Queue.Name, rich.Queue.Name, about())
				} else if after == 0 && more && ran == 0 {
					t.Fatalf("%s is the equal of %s: %s", poor.Queue.Name, rich.Queue.Name, about())
				}
			}
		}
	}
}

func TestMaxTasksGoByDayAndTime(t *testing.T) {
	const site = `{"* 07:00": "5", "* 19:00": 10, "5 19:00": 15, "6 7:00": 15.0, "0 07:00": 16}`
	for _, c := range []struct {
		times string
		at    string // 2026-03-01 is a Sunday
		want  int
	}{
		{site, "2026-03-04 07:00", 5},
		{site, "2026-03-04 18:59", 5},
		{site, "2026-03-04 19:00", 10},
		{site, "2026-03-05 06:59", 10}, // an entry of the day before still holds
		{site, "2026-03-06 06:59", 10},
		{site, "2026-03-06 19:00", 15}, // a day's own entry counts instead of the daily one at the same time
		{site, "2026-03-07 06:59", 15},
		{site, "2026-03-07 07:00", 15},
		{site, "2026-03-07 19:00", 10},
		{site, "2026-03-01 06:59", 10}, // the week round
		{site, "2026-03-01 07:00", 16},
		{`{"3 12:30": 7}`, "2026-03-04 12:29", 7},
		{`{"3 12:30": 7, "3 12:45": 8}`, "2026-03-04 13:00", 8},
		{`{"3 12:30": 7, "3 12:45": 8}`, "2026-03-04 12:29", 8},
	} {
		at, err := time.ParseInLocation("2006-01-02 15:04", c.at, time.FixedZone("site", 5*3600))
		if err != nil {
			t.Fatal(err)
		}
		if got := parsed(t, `{"queues": [], "max_tasks": `+c.times+`}`).MaxTasks(at); got != c.want {
			t.Errorf("at %s %s is %d, want %d", at.Format("Mon 15:04"), c.times, got, c.want)
		}
	}
	if got := parsed(t, `{"queues": [], "max_tasks": {}}`).MaxTasks(time.Now()); got != 0 {
		t.Errorf("without entries it is %d, want 0", got)
	}
}

func TestAMalformedBalanceNamesThePlace(t *testing.T) {
	const times, queues = `"max_tasks": {"* 07:00": 5}, `, `"queues": [["a"]], `
	for document, want := range map[string]string{
		``:                                      `the balance document is not a JSON object`,
		`null`:                                  `the balance document is not a JSON object`,
		`[]`:                                    `the balance document is not a JSON object`,
		`{} {}`:                                 `the balance document is not a JSON object`,
		`{}`:                                    `queues is missing, or null; it has to be a list of lists of names, as in [["bulk"], ["urgent"]]; max_tasks is missing`,
		`{"max_tasks": {}, "queues": [["a"]]}`:  `max_tasks is empty`,
		`{` + times + `"queues": {"a": 1}}`:     `queues is an object; it has to be a list of lists`,
		`{` + times + `"queues": [["a"], "b"]}`: `queues[1] is "b"; it has to be a list of names`,
		`{` + times + `"queues": [["a", 5]]}`:   `queues[0][1] is 5; it has to be the name of a queue`,
		`{` + times + `"queues": [["a"], ["b", "a"]]}`:             `queues[1][1] is "a", which is queues[0][0] already`,
		`{` + queues + `"max_tasks": 5}`:                           `max_tasks is 5; it has to be an object`,
		`{` + queues + `"max_tasks": {"7 07:00": 5}}`:              `max_tasks["7 07:00"]: a time is "DAY HH:MM", where DAY is 0 (Sunday) to 6, or * for every day`,
		`{` + queues + `"max_tasks": {"* 24:00": 5}}`:              `max_tasks["* 24:00"]: a time is`,
		`{` + queues + `"max_tasks": {"Mon 07:00": 5}}`:            `max_tasks["Mon 07:00"]: a time is`,
		`{` + queues + `"max_tasks": {"* 07:00": 1.1}}`:            `max_tasks["* 07:00"] is 1.1; it has to be a number of tasks, 0 to 1000000`,
		`{` + queues + `"max_tasks": {"* 07:00": -1}}`:             `max_tasks["* 07:00"] is -1; it`,
		`{` + queues + `"max_tasks": {"* 07:00": "x"}}`:            `max_tasks["* 07:00"] is "x"; it`,
		`{` + queues + `"max_tasks": {"* 07:00": "1e3"}}`:          `max_tasks["* 07:00"] is "1e3"; it`,
		`{` + queues + `"max_tasks": {"* 07:00": 1, "* 7:00": 2}}`: `max_tasks["* 7:00"] is the same time as max_tasks["* 07:00"]`,
		`{` + times + queues + `"disabled": "soon"}`:               `disabled is "soon"; it has to be a time in seconds since 1970, or null`,
	} {
		_, err := balance.Parse(json.RawMessage(document))
		if !errors.Is(err, balance.ErrMalformed) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\n%v, want\n%s", document, err, want)
		}
	}
}

// A message goes into the document, each 2 s: its length must not grow with the number of mistakes.
func TestMessagesAboutABalanceDocumentAreShort(t *testing.T) {
	const long, bound = 20_000, 4000
	many := func(item string) string { return strings.TrimSuffix(strings.Repeat(item+",", 5_000), ",") }
	var keys, words []string
	for i := range 2_000 {
		keys = append(keys, fmt.Sprintf(`"k%d": 1`, i))
		words = append(words, fmt.Sprintf(`"w%d"`, i))
	}
	word, digits := strings.Repeat("é\x01", long), strings.Repeat("1", long)
	quoted, _ := json.Marshal(word)
	for document, want := range map[string]string{
		`{"queues": [` + many(`5`) + `], "max_tasks": {}}`:                                                           `queues[0] is 5; it has to be a list of names, as in ["bulk"]; queues[1] is 5`,
		`{"queues": [[` + many(`5`) + `]], "max_tasks": 5}`:                                                          `queues[0][0] is 5; `,
		`{"queues": [[` + many(`"a"`) + `]], "max_tasks": 5}`:                                                        `queues[0][1] is "a", which is queues[0][0] already`,
		`{"queues": [], "max_tasks": {` + strings.Join(keys, ",") + `}}`:                                             `max_tasks["k0"]: a time is`,
		fmt.Sprintf(`{"queues": %s, "max_tasks": %[1]s}`, quoted):                                                    `queues is "é\x01`,
		fmt.Sprintf(`{"queues": %s, "max_tasks": {}}`, digits):                                                       `queues is 11111`,
		fmt.Sprintf(`{"queues": [], "max_tasks": {%s: %[1]s}}`, quoted):                                              `max_tasks["é\x01`,
		fmt.Sprintf(`{"queues": [], "max_tasks": {"* 00:00": %s}}`, digits):                                          `max_tasks["* 00:00"] is 11111`,
		fmt.Sprintf(`{"queues": [[%s, %[1]s]], "max_tasks": {}}`, quoted):                                            `queues[0][1] is "é\x01`,
		fmt.Sprintf(`{"queues": [%s], "max_tasks": {}, "disabled": 1}`, quoted):                                      `queues[0] is "é\x01`,
		fmt.Sprintf(`{"queues": [], "max_tasks": {}, "disabled": %s}`, quoted):                                       `disabled is "é\x01`,
		fmt.Sprintf(`{"queues": [], "max_tasks": {"* %[1]s00:00": 1, "* %[1]s0:00": 2}}`, strings.Repeat(" ", long)): `max_tasks["*    `,
	} {
		_, err := balance.Parse(json.RawMessage(document))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("the error is\n%.200v, want\n%s", err, want)
		} else if got := err.Error(); len(got) > bound || !utf8.ValidString(got) {
			t.Errorf("an error of %d bytes: %.200s", len(got), got)
		}
	}
	for _, settings := range []string{`{"a\u0000b": 1}`, `{"note": [1, {"x": {"a\u0000b": 1}}]}`} {
		if _, err := balance.With(nil, json.RawMessage(settings)); !errors.Is(err, balance.ErrMalformed) || !strings.Contains(err.Error(), "NUL") {
			t.Errorf("%s is refused with %v", settings, err)
		}
	}
	if _, err := balance.With(nil, json.RawMessage(`{"note": ["a\u0000b"]}`)); err != nil {
		t.Errorf("a NUL in a value: %v", err)
	}
	_, err := balance.With(nil, json.RawMessage(`{"$`+strings.Repeat("k", long)+`": 1}`))
	if err == nil || len(err.Error()) > bound {
		t.Errorf("a key of %d bytes is refused with %.200v", long, err)
	}
	_, err = balance.Parse(json.RawMessage(`{"queues": [` + many(`5`) + `], "max_tasks": {}}`))
	if want := `queues[9] is 5; it has to be a list of names, as in ["bulk"]; and 4990 more`; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("the error is\n%v, want at its end\n%s", err, want)
	}

	b := parsed(t, fmt.Sprintf(`{"queues": [[%s, %s]], "max_tasks": {"* 00:00": 1}, %s, %[1]s: 1}`, quoted, strings.Join(words, ","), strings.Join(keys, ",")))
	_, missing := b.Shares(1, nil)
	for _, notes := range [][]string{b.Notes, missing} {
		for _, n := range notes {
			if len(n) > 500 {
				t.Errorf("a note of %d bytes: %.200s", len(n), n)
			}
		}
		if got := balance.JoinPlaces(notes); len(got) > bound || !strings.HasSuffix(got, "; and 1991 more") {
			t.Errorf("%d notes are a message of %d bytes: %.200s", len(notes), len(got), got)
		}
	}
	for n, want := range map[int]string{0: "", 1: "a", 2: "a; a", 10: strings.Repeat("a; ", 9) + "a", 11: strings.Repeat("a; ", 10) + "and 1 more"} {
		if got := balance.JoinPlaces(slices.Repeat([]string{"a"}, n)); got != want {
			t.Errorf("%d places are %q, want %q", n, got, want)
		}
	}
}

func TestABalanceDocument(t *testing.T) {
	b := parsed(t, `{"queues": [["bulk"], ["x", "y"]], "max_tasks": {"* 07:00": 5}, "disabled": 1900000000.5,
		"status": "OK", "message": "QueueBalance is running", "timestamp": 1800000000, "max_taks": {}}`)
	if got, want := b.Disabled, time.UnixMilli(1900000000500).UTC(); !got.Equal(want) {
		t.Errorf("disabled until %v, want %v", got, want)
	}
	if want := []string{`"max_taks" is not a key of the balance document and has no effect`}; !slices.Equal(b.Notes, want) {
		t.Errorf("notes are %q, want %q", b.Notes, want)
	}
	if b := parsed(t, `{"queues": [], "max_tasks": {}, "disabled": null}`); !b.Disabled.IsZero() {
		t.Errorf("disabled until %v, though it is null", b.Disabled)
	}
	if b := parsed(t, string(balance.Empty)); len(b.Sets) > 0 {
		t.Errorf("the empty document has %q", b.Sets)
	}
	_, missing := b.Shares(5, []plan.Queue{{Name: "x"}})
	if want := []string{`queues[0][0]: there is no queue "bulk"`, `queues[1][1]: there is no queue "y"`}; !slices.Equal(missing, want) {
		t.Errorf("missing are %q, want %q", missing, want)
	}
}

func TestAShareChangesAQueue(t *testing.T) {
	for _, c := range []struct {
		queue   plan.Queue
		threads int
		want    bool
	}{
		{plan.Queue{Threads: 5}, 5, false},
		{plan.Queue{Threads: 5}, 4, true},
		{plan.Queue{Threads: 5, Unlimited: true}, 5, true},
	} {
		if s := (balance.Share{Queue: c.queue, Threads: c.threads}); s.Changes() != c.want {
			t.Errorf("%+v changes: %v, want %v", s, s.Changes(), c.want)
		}
	}
}

func FuzzParseBalance(f *testing.F) {
	f.Add(`{"queues": [["bulk"], ["x", "y"]], "max_tasks": {"* 07:00": 5, "1 7:00": "6"}, "disabled": 1e9}`)
	f.Add(`{"queues": [[[]]], "max_tasks": {"": {}}}`)
	f.Fuzz(func(t *testing.T, document string) {
		b, err := balance.Parse(json.RawMessage(document))
		if err != nil {
			if !errors.Is(err, balance.ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		if most := b.MaxTasks(time.Now()); most < 0 || most > plan.MaxThreads {
			t.Fatalf("%s: %d tasks", document, most)
		}
		b.Shares(5, nil)
	})
}
