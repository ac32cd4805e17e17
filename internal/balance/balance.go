// Package balance owns the balance document of Disbatch 4, and how it shares threads among queues.
package balance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/plan"
)

// A Document is the content of the balance document of Disbatch 4's QueueBalance. It says how many
// tasks the named queues may run together, by day and time, and which of them come first.
// Parse makes one.
type Document struct {
	// Sets are the names of queues. Queues of one set are equal. The first set gets the rest of the
	// others. Among the others the earlier one comes first.
	Sets [][]string
	// Disabled is until when nothing is to be changed; zero: it is not disabled.
	Disabled time.Time
	// Notes are what is probably not meant in the document, with its place.
	Notes []string

	week []interval // by from
}

// An interval begins at a minute of the week, which starts on Sunday at 00:00, and lasts until the
// next one.
type interval struct{ from, most int }

const (
	minutesOfDay  = 24 * 60
	minutesOfWeek = 7 * minutesOfDay
)

// A Status is how QueueBalance is, in the words that Disbatch's monitoring knows.
type Status string

const (
	OK       Status = "OK"
	Warning  Status = "WARNING"  // part of the document has no effect
	Critical Status = "CRITICAL" // nothing is balanced
)

// A State is what the balance document says of who works by it.
type State struct {
	Status    Status `json:"status"`
	Message   string `json:"message"`
	Timestamp int64  `json:"timestamp"` // seconds since 1970 by the store's clock
}

// ErrMalformed means that the balance document is malformed, and says where.
var ErrMalformed = errors.New("malformed balance document")

// An Error is an ErrMalformed that lists each mistake.
type Error []Mistake

// A Mistake is one thing that is wrong with a balance document.
type Mistake struct {
	Path    []string // the keys, and the numbers of items from 0 on, that lead to it; none: the document itself
	Key     bool     // what is wrong is the last key of the path, and not its value
	Message string   // names the place, too
}

// Error is JoinPlaces of the messages.
func (e Error) Error() string {
	places := make([]string, len(e))
	for i := range e {
		places[i] = e[i].Message
	}
	return JoinPlaces(places)
}

// Unwrap returns ErrMalformed.
func (e Error) Unwrap() error { return ErrMalformed }

// Empty is the document that QueueBalance makes where there is none: it balances nothing.
var Empty = json.RawMessage(`{"max_tasks":{},"queues":[]}`)

// Keys are the keys of the balance document; others have no effect.
var Keys = []string{"queues", "max_tasks", "disabled", "status", "message", "timestamp"}

// mostPlaces is how many places one message names.
const mostPlaces = 10

// JoinPlaces makes one message of the mistakes in the balance document, each with its place. If
// there are many, it names some and counts the others.
func JoinPlaces(places []string) string {
	if more := len(places) - mostPlaces; more > 0 {
		return fmt.Sprintf("%s; and %d more", strings.Join(places[:mostPlaces], "; "), more)
	}
	return strings.Join(places, "; ")
}

// Parse reads a balance document. The mistakes are one Error that names the places,
// as JoinPlaces does.
func Parse(document json.RawMessage) (*Document, error) {
	var fields map[string]any
	dec := json.NewDecoder(bytes.NewReader(document))
	dec.UseNumber()
	if err := dec.Decode(&fields); err != nil || fields == nil || !json.Valid(document) { // there may be more after it
		return nil, Error{{Message: `the balance document is not a JSON object, as in {"max_tasks": {"* 07:00": 5}, "queues": [["bulk"], ["urgent"]]}`}}
	}
	p := &parser{}
	p.readQueues(fields["queues"])
	p.readMaxTasks(fields["max_tasks"])
	p.readDisabled(fields["disabled"])
	if len(p.wrong) == 0 && len(p.week) == 0 && slices.ContainsFunc(p.Sets, func(set []string) bool { return len(set) > 0 }) {
		p.failf([]string{"max_tasks"}, `max_tasks is empty; say how many tasks the queues may run, as in {"* 00:00": 5}`)
	}
	if len(p.wrong) > 0 {
		return nil, p.wrong
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(Keys, key) {
			p.Notes = append(p.Notes, fmt.Sprintf("%s is not a key of the balance document and has no effect", described(key)))
		}
	}
	return &p.Document, nil
}

type parser struct {
	Document
	wrong Error
}

func (p *parser) failf(path []string, format string, args ...any) {
	p.wrong = append(p.wrong, Mistake{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (p *parser) failKeyf(path []string, format string, args ...any) {
	p.failf(path, format, args...)
	p.wrong[len(p.wrong)-1].Key = true
}

// described is what a message calls a value.
func described(v any) string {
	switch v := v.(type) {
	case nil:
		return "missing, or null"
	case string:
		return jsontext.Excerpt([]byte(v))
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return jsontext.Brief(fmt.Append(nil, v))
}

func (p *parser) readQueues(v any) {
	sets, ok := v.([]any)
	if !ok {
		p.failf([]string{"queues"}, `queues is %s; it has to be a list of lists of names, as in [["bulk"], ["urgent"]]`, described(v))
		return
	}
	first := map[string]string{}
	for i, set := range sets {
		place := fmt.Sprintf("queues[%d]", i)
		names, ok := set.([]any)
		if !ok {
			p.failf([]string{"queues", strconv.Itoa(i)}, `%s is %s; it has to be a list of names, as in ["bulk"]`, place, described(set))
			continue
		}
		p.Sets = append(p.Sets, nil)
		for k, v := range names {
			here, path := fmt.Sprintf("%s[%d]", place, k), []string{"queues", strconv.Itoa(i), strconv.Itoa(k)}
			name, ok := v.(string)
			if !ok || name == "" {
				p.failf(path, "%s is %s; it has to be the name of a queue", here, described(v))
				continue
			}
			if there, twice := first[name]; twice {
				p.failf(path, "%s is %s, which is %s already; leave one of them out", here, described(name), there)
				continue
			}
			first[name] = here
			p.Sets[len(p.Sets)-1] = append(p.Sets[len(p.Sets)-1], name)
		}
	}
}

// timeSyntax is a key of max_tasks. Disbatch's page writes both digits of the hour; its balancer reads one, too.
var timeSyntax = regexp.MustCompile(`^\s*(\*|[0-6])\s+([01]?[0-9]|2[0-3]):([0-5][0-9])\s*$`)

func (p *parser) readMaxTasks(v any) {
	times, ok := v.(map[string]any)
	if !ok {
		p.failf([]string{"max_tasks"}, `max_tasks is %s; it has to be an object, as in {"* 07:00": 5, "* 19:00": 10, "6 00:00": 15}`, described(v))
		return
	}
	most := map[int]int{}
	written := map[string]string{}
	// Days of their own come after "*", which sorts before digits, and so count where both have the same time.
	for _, key := range slices.Sorted(maps.Keys(times)) {
		place, path := fmt.Sprintf("max_tasks[%s]", described(key)), []string{"max_tasks", key}
		n, ok := wholeNumber(times[key])
		if !ok || n < 0 || n > plan.MaxThreads {
			p.failf(path, "%s is %s; it has to be a number of tasks, 0 to %d", place, described(times[key]), plan.MaxThreads)
		}
		m := timeSyntax.FindStringSubmatch(key)
		if m == nil {
			p.failKeyf(path, `%s: a time is "DAY HH:MM", where DAY is 0 (Sunday) to 6, or * for every day, as in "* 07:00"`, place)
			continue
		}
		hour, _ := strconv.Atoi(m[2]) // they are digits
		minute, _ := strconv.Atoi(m[3])
		same := fmt.Sprintf("%s %02d:%02d", m[1], hour, minute)
		if other, twice := written[same]; twice {
			p.failKeyf(path, "%s is the same time as max_tasks[%s]; leave one of them out", place, described(other))
		}
		written[same] = key
		days := []int{0, 1, 2, 3, 4, 5, 6}
		if m[1] != "*" {
			days = []int{int(m[1][0] - '0')}
		}
		for _, day := range days {
			most[day*minutesOfDay+hour*60+minute] = int(n)
		}
	}
	for _, from := range slices.Sorted(maps.Keys(most)) {
		p.week = append(p.week, interval{from, most[from]})
	}
}

func (p *parser) readDisabled(v any) {
	if v == nil {
		return
	}
	seconds, ok := number(v)
	if !ok || math.Abs(seconds) > 1<<40 {
		p.failf([]string{"disabled"}, "disabled is %s; it has to be a time in seconds since 1970, or null", described(v))
		return
	}
	p.Disabled = time.UnixMilli(int64(seconds * 1000)).UTC()
}

// number returns a number, or a text that is one: Disbatch's page sends those of max_tasks as text.
func number(v any) (float64, bool) {
	var text string
	switch v := v.(type) {
	case json.Number:
		text = v.String()
	case string:
		if strings.Trim(v, "0123456789") == "" {
			text = v
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
}

func wholeNumber(v any) (int64, bool) {
	f, ok := number(v)
	return int64(f), ok && f == math.Trunc(f) && math.Abs(f) < 1<<53
}

// MaxTasks returns how many tasks the queues may run together at that time, by the day and clock of
// its own zone. The last entry before that time decides, the week round. An entry for a day
// replaces one for every day at the same time. Without any entry it is 0.
func (b *Document) MaxTasks(at time.Time) int {
	if len(b.week) == 0 {
		return 0
	}
	now := int(at.Weekday())*minutesOfDay + at.Hour()*60 + at.Minute()
	i := sort.Search(len(b.week), func(i int) bool { return b.week[i].from > now })
	return b.week[(i+len(b.week)-1)%len(b.week)].most
}

// A Share is how many threads a queue is to have.
type Share struct {
	Queue   plan.Queue // as it is
	Threads int
}

// Changes reports whether the queue is to be changed.
func (s *Share) Changes() bool { return s.Queue.Unlimited || s.Queue.Threads != s.Threads }

// Shares divides most threads among the queues that the document names. queues are the existing
// ones, with their counts. missing describes the others, with their places. The shares come in the
// order of the document.
//
// A queue wants as many threads as it has tasks queued and active. First, each set is due its wants
// from the rest, in the order of priority. Its queues are due the same, unless one wants less. But
// nothing that runs is stopped. If queues have more active tasks than they are due, less is free
// for the others, and they get the free threads in the same order. So the shares together never
// exceed most. Neither do the running tasks, unless more ran already. A queue that wants nothing
// gets 0.
func (b *Document) Shares(most int, queues []plan.Queue) (shares []Share, missing []string) {
	byName := make(map[string]*plan.Queue, len(queues))
	for i := range queues {
		if q := &queues[i]; byName[q.Name] == nil {
			byName[q.Name] = q
		}
	}
	type part struct{ from, to int } // of shares
	sets := make([]part, len(b.Sets))
	free := most
	for i, set := range b.Sets {
		sets[i].from = len(shares)
		for k, name := range set {
			q := byName[name]
			if q == nil {
				missing = append(missing, fmt.Sprintf("queues[%d][%d]: there is no queue %s", i, k, described(name)))
				continue
			}
			shares = append(shares, Share{Queue: *q})
			free -= q.Active
		}
		sets[i].to = len(shares)
	}
	if len(sets) > 1 {
		sets = append(sets[1:len(sets):len(sets)], sets[0])
	}
	left := most
	free = max(free, 0)
	for _, set := range sets {
		in := shares[set.from:set.to]
		wants := make([]int, len(in))
		for i := range in {
			wants[i] = in[i].Queue.Queued + in[i].Queue.Active
		}
		due := spread(left, wants)
		needs := make([]int, len(in))
		for i := range in {
			left -= due[i]
			in[i].Threads = min(due[i], in[i].Queue.Active)
			needs[i] = due[i] - in[i].Threads
		}
		for i, more := range spread(free, needs) {
			free -= more
			in[i].Threads += more
		}
	}
	return shares, missing
}

// spread divides room: all get the same, but none more than it wants. The first ones get the
// remainder.
func spread(room int, wants []int) []int {
	got := make([]int, len(wants))
	for room > 0 {
		unmet := 0
		for i := range wants {
			if got[i] < wants[i] {
				unmet++
			}
		}
		if unmet == 0 {
			break
		}
		each := max(1, room/unmet)
		for i := range wants {
			more := min(each, wants[i]-got[i], room)
			got[i] += more
			room -= more
		}
	}
	return got
}

// With returns a balance document in which the keys of settings have their values, and the
// others keep theirs. It returns an ErrMalformed if settings is not a JSON object. It also does for
// keys that databases read as something else: empty keys, keys with a dot, and keys that begin with
// $. Databases cannot keep a key with a NUL. An empty document has no keys.
func With(document, settings json.RawMessage) (json.RawMessage, error) {
	fields, with := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if len(document) > 0 {
		if err := json.Unmarshal(document, &fields); err != nil {
			return nil, fmt.Errorf("the balance document that is there: %w", err)
		}
	}
	if err := json.Unmarshal(settings, &with); err != nil || with == nil {
		return nil, refusal.New(ErrMalformed, "settings of the balance document are a JSON object")
	}
	for key := range with {
		if key == "" || strings.Contains(key, ".") || strings.HasPrefix(key, "$") {
			return nil, refusal.New(ErrMalformed, "%s cannot be a key of the balance document", described(key))
		}
	}
	var value any
	if err := json.Unmarshal(settings, &value); err != nil {
		return nil, err
	}
	if key, is := keyWithNUL(value); is {
		return nil, refusal.New(ErrMalformed, "%s cannot be a key in the balance document: it has a NUL", described(key))
	}
	maps.Copy(fields, with)
	return json.Marshal(fields)
}

// keyWithNUL returns a key with a NUL in it of an object anywhere in a decoded value; false if there is none.
func keyWithNUL(value any) (key string, is bool) {
	switch v := value.(type) {
	case map[string]any:
		for k, in := range v {
			if strings.ContainsRune(k, 0) {
				return k, true
			}
			if key, is = keyWithNUL(in); is {
				return key, true
			}
		}
	case []any:
		for _, in := range v {
			if key, is = keyWithNUL(in); is {
				return key, true
			}
		}
	}
	return "", false
}
