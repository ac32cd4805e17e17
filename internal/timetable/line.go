package timetable

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/netresearch/go-cron"

	"github.com/seed-1177d267/sluice/plan"
)

// A field is one of the seven fields of a cron line, in their order.
type field struct {
	name       string // in a cron line
	least      int
	most       int
	wordOf     func(int) string // the English word of a value; nil: the field has numbers only
	holds      string
	nameInOSTE string
}

func month(n int) string { return time.Month(n).String() }
func day(n int) string   { return time.Weekday(n % 7).String() }

var fields = [...]field{
	{"second", 0, 59, nil, "0 to 59", "Second"},
	{"minute", 0, 59, nil, "0 to 59", "Minute"},
	{"hour", 0, 23, nil, "0 to 23", "Hour"},
	{"day of month", 1, 31, nil, "1 to 31", "Day"},
	{"month", 1, 12, month, "1 to 12 or jan to dec", "Month"},
	{"day of week", 0, 7, day, "0 to 7 or sun to sat, where 0 and 7 are Sunday", "DayOfWeek"},
	{"year", 1970, 2099, nil, "1970 to 2099", "Year"},
}

// Indices of fields.
const (
	second = iota
	minute
	hour
	dayOfMonth
	_
	dayOfWeek
	year
)

// short are the lines that have a name, as in crontab(5).
var short = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// longest is the length of a line in bytes. The library refuses lines of more than 1,024 bytes, and
// a line is written out for it in at most twice its length.
const longest = 512

// A line is a cron line that was read. It matches wall times, which are written as times in UTC,
// where no clock changes.
type line struct {
	spec    *cron.SpecSchedule
	anyHour bool          // the hour begins with *
	covers  time.Duration // a match takes the whole day, hour, minute or second
}

// Fields are the seven fields of a recurring activity of the Open Scheduled Task Engine. A field
// holds what the field of a cron line holds. Second may be empty for 0. Each field of the date may
// be empty for any.
type Fields struct {
	Year, Month, Day, DayOfWeek, Hour, Minute, Second string
}

// words returns the fields in the order of a cron line, with what an empty field stands for. Minute and
// Hour stand for nothing.
func (f Fields) words() []string {
	words := []string{f.Second, f.Minute, f.Hour, f.Day, f.Month, f.DayOfWeek, f.Year}
	for i := range words {
		words[i] = strings.TrimSpace(words[i])
		switch {
		case words[i] != "" || i == minute || i == hour:
		case i == second:
			words[i] = "0"
		default:
			words[i] = "*"
		}
	}
	return words
}

// Line returns fields that New accepts as a cron line of seven fields.
func (f Fields) Line() string { return strings.Join(f.words(), " ") }

// FieldsOf returns the fields of a cron line that New accepts. It reports false if there is no line.
func FieldsOf(text string) (Fields, bool) {
	words, err := split(text, "0")
	if err != nil {
		return Fields{}, false
	}
	return Fields{Second: words[0], Minute: words[1], Hour: words[2], Day: words[3], Month: words[4], DayOfWeek: words[5], Year: words[6]}, true
}

// readFields reads the fields of the OSTE document. An error names the field as the document does.
func readFields(f Fields) (*line, error) {
	words := f.words()
	for _, i := range []int{minute, hour} {
		if words[i] == "" {
			return nil, fmt.Errorf("%s is missing; it holds %s, or *", fields[i].nameInOSTE, fields[i].holds)
		}
	}
	return compile(words, func(f field) string { return f.nameInOSTE })
}

// readLine reads a cron line of five fields, of six with seconds first, or of seven with years
// last. A line of five fields gets the second that is given.
func readLine(text, second string) (*line, error) {
	words, err := split(text, second)
	if err != nil {
		return nil, err
	}
	return compile(words, func(f field) string { return "the " + f.name })
}

// split returns the seven fields of a cron line.
func split(text, second string) ([]string, error) {
	if len(text) > longest {
		return nil, fmt.Errorf("the line has %d bytes; it can have %d", len(text), longest)
	}
	words := strings.Fields(text)
	if len(words) > 0 && strings.HasPrefix(words[0], "@") {
		of, ok := short[strings.ToLower(text)]
		if words[0] == "@every" {
			return nil, errors.New("@every is no cron line; give an interval with every and from")
		}
		if !ok {
			return nil, unknown(text, slices.Sorted(maps.Keys(short)), "%q is not known; there are %s",
				text, strings.Join(slices.Sorted(maps.Keys(short)), ", "))
		}
		words = strings.Fields(of)
	}
	switch len(words) {
	case 5:
		words = append([]string{second}, append(words, "*")...)
	case 6:
		if n, err := strconv.Atoi(words[5]); err == nil && n >= fields[year].least {
			return nil, fmt.Errorf("the day of week is %d; a line with a year has seven fields, seconds first", n)
		}
		words = append(words, "*")
	case 7:
	default:
		return nil, fmt.Errorf("the line has %d fields; it has 5 (minute, hour, day of month, month, day of week), "+
			"6 with seconds first, or 7 with years last", len(words))
	}
	return words, nil
}

// compile reads seven fields, seconds first.
func compile(words []string, call func(field) string) (*line, error) {
	plain := make([]string, len(words))
	for i, f := range fields {
		var err error
		if plain[i], err = f.read(words[i], call(f)); err != nil {
			return nil, err
		}
	}
	parsed, err := parser.Parse(strings.Join(plain, " "))
	if err != nil {
		return nil, err
	}
	l := &line{spec: parsed.(*cron.SpecSchedule), anyHour: strings.HasPrefix(words[hour], "*")}
	// The rule of crontab(5) about days looks at the first letter alone. The library would look at
	// the star that it remembers in the highest bit.
	l.spec.DowOrDom = !strings.HasPrefix(words[dayOfMonth], "*") && !strings.HasPrefix(words[dayOfWeek], "*")
	l.spec.Dom &^= star
	l.spec.Dow &^= star
	l.spec.Location = time.UTC
	l.covers = time.Second
	for _, c := range []struct {
		set   uint64
		count int
		whole time.Duration
	}{{l.spec.Second, 60, time.Minute}, {l.spec.Minute, 60, time.Hour}, {l.spec.Hour, 24, 24 * time.Hour}} {
		if bits.OnesCount64(c.set&^star) < c.count {
			break
		}
		l.covers = c.whole
	}
	return l, nil
}

// star is the bit by which the library remembers that a field was *.
const star = 1 << 63

var parser = cron.MustNewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Year).
	WithMaxSearchYears(500)

// next returns the first wall time at or after from that the line matches; zero if there is none.
func (l *line) next(from time.Time) time.Time {
	wall := l.spec.Next(from.Add(-time.Nanosecond))
	if wall.Year() > lastYear {
		return time.Time{}
	}
	return wall
}

func (l *line) matches(wall time.Time) bool { return l.next(wall).Equal(wall) }

// read reads a field, and writes it out in numbers for the library. The library alone would let
// ranges be upside down, and its errors name no field.
func (f field) read(text, called string) (string, error) {
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		plain, err := f.item(item, called)
		if err != nil {
			return "", err
		}
		items = append(items, plain)
	}
	return strings.Join(items, ","), nil
}

// item reads one element of a list: *, a value or a range, each perhaps with a step.
func (f field) item(text, called string) (string, error) {
	span, by, stepped := strings.Cut(text, "/")
	low, high, ranged := strings.Cut(span, "-")
	if span == "*" && !stepped {
		return "*", nil
	}
	from, to := f.least, f.most
	var err error
	if span != "*" {
		if from, err = f.value(low, called); err != nil {
			return "", err
		}
		switch {
		case ranged:
			if to, err = f.value(high, called); err != nil {
				return "", err
			}
			if to == 0 && strings.EqualFold(high, "sun") {
				to = 7 // mon-sun is a week
			}
		case !stepped:
			to = from
		}
	}
	if from > to {
		return "", fmt.Errorf("%s has the range %q upside down; write \"%s,%s\"", called, span, spanned(from, f.most), spanned(f.least, to))
	}
	step := 1
	if stepped {
		if step, err = strconv.Atoi(by); err != nil || step < 1 || step > f.most-f.least {
			return "", fmt.Errorf("%s has the step %q; a step is 1 to %d, as in */2", called, by, f.most-f.least)
		}
	}
	switch {
	case step > to-from: // the library refuses a step that matches nothing more
		return strconv.Itoa(from), nil
	case step == 1:
		return spanned(from, to), nil
	}
	return spanned(from, to) + "/" + by, nil
}

func spanned(from, to int) string {
	if from == to {
		return strconv.Itoa(from)
	}
	return fmt.Sprintf("%d-%d", from, to)
}

// value reads a number or a name.
func (f field) value(word, called string) (int, error) {
	digits := word != "" && strings.Trim(word, "0123456789") == ""
	if n, err := strconv.Atoi(word); digits && err == nil && n >= f.least && n <= f.most {
		return n, nil
	}
	var known []string
	for n := f.least; f.wordOf != nil && n <= f.most; n++ {
		name := f.wordOf(n)
		if strings.EqualFold(word, name) || strings.EqualFold(word, name[:3]) {
			return n, nil
		}
		known = append(known, strings.ToLower(name[:3]), strings.ToLower(name))
	}
	return 0, unknown(word, known, "%s is %q; it holds %s", called, word, f.holds)
}

// unknown is the error of a word that is not known. It names the words that are.
func unknown(word string, known []string, format string, args ...any) error {
	return plan.Problem{Task: -1, Item: -1, Message: fmt.Sprintf(format, args...), Word: word, Known: known}
}
