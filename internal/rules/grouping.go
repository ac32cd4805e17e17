package rules

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/plan"
)

// The groupings of a foreach. Inputs of no known node have the node "".
const (
	split          = "split" // each input is a group
	groupLabel     = "group_label"
	groupNode      = "group_node"
	groupNodeLabel = "group_node_label"
	groupAll       = "group_all" // all inputs are one group
)

var groupings = []string{split, groupLabel, groupNode, groupNodeLabel, groupAll}

// Groupings returns the words that Foreach.Group may be.
func Groupings() []string { return slices.Clone(groupings) }

// CheckGrouping refuses other words.
func CheckGrouping(word string) error {
	if slices.Contains(groupings, word) {
		return nil
	}
	return fmt.Errorf("group is %q; it is one of %s", word, strings.Join(groupings, ", "))
}

// allLabels is the label of an input that belongs to every label, as the plugin disco has it.
const allLabels = -1

// A Group is an item of a foreach with Foreach.Group: inputs for one worker.
type Group struct {
	Label    int64             `json:"label"` // of the inputs; 0 if the grouping does not go by labels, -1 for all
	Host     string            `json:"host"`  // the node that the inputs are on; "" for none
	Grouping string            `json:"grouping"`
	Of       string            `json:"of,omitempty"`      // the parent whose outputs the inputs are
	Outputs  []OutputRange     `json:"outputs,omitempty"` // which of them, counted through its lists, in order
	Inputs   []json.RawMessage `json:"inputs,omitempty"`  // the inputs themselves, if they are no outputs of a parent
}

// An OutputRange is one output of a parent, or several that follow each other, from 0: "3" or "[3,7]" in JSON. A
// stage of many tasks has as many outputs, and mostly all of them have a label.
type OutputRange struct{ From, To int }

// UnmarshalJSON implements json.Unmarshaler.
func (s *OutputRange) UnmarshalJSON(text []byte) error {
	if text[0] == '[' {
		ends := [2]int{}
		err := json.Unmarshal(text, &ends)
		s.From, s.To = ends[0], ends[1]
		return err
	}
	err := json.Unmarshal(text, &s.From)
	s.To = s.From
	return err
}

// MarshalJSON implements json.Marshaler.
func (s OutputRange) MarshalJSON() ([]byte, error) { return s.append(nil), nil }

func (s OutputRange) append(out []byte) []byte {
	if s.From == s.To {
		return strconv.AppendInt(out, int64(s.From), 10)
	}
	return fmt.Appendf(out, "[%d,%d]", s.From, s.To)
}

// GroupOf returns the group that an item is; nil if it is none.
func GroupOf(item json.RawMessage) *Group {
	var g Group
	if !bytes.Contains(item, []byte(`"grouping"`)) || json.Unmarshal(item, &g) != nil || CheckGrouping(g.Grouping) != nil {
		return nil
	}
	return &g
}

// String is the group for people: its label and its node.
func (g *Group) String() string {
	label := strconv.FormatInt(g.Label, 10)
	if g.Label == allLabels {
		label = "all"
	}
	if g.Host == "" {
		return label
	}
	return label + " " + g.Host
}

// Read returns the inputs of the group. output is that of the parent Of. The outputs of a parent that has
// run again may be other ones: Read refuses those that do not belong to the group.
func (g *Group) Read(output json.RawMessage) ([]json.RawMessage, error) {
	inputs := slices.Clone(g.Inputs)
	next, at := 0, -1
	var in input
	err := eachInput(output, func(c *cursor) (err error) {
		if at++; next == len(g.Outputs) || at < g.Outputs[next].From {
			c.value()
			return nil
		}
		if at == g.Outputs[next].To {
			next++
		}
		var raw []byte
		in, raw, err = c.input(in.labels)
		if err == nil && !in.in(g) {
			err = fmt.Errorf("output %d of %s is none of the group %s any more; retry %s with --downstream", at, g.Of, g, g.Of)
		}
		inputs = append(inputs, in.as(g.Grouping, g.Label, raw))
		return err
	})
	if err == nil && next < len(g.Outputs) {
		err = fmt.Errorf("output %d of %s is not there any more; retry %s with --downstream", max(at+1, g.Outputs[next].From), g.Of, g.Of)
	}
	return inputs, err
}

// OutputURLs returns the URLs of the outputs of a task of the plugin disco, or of those of its items, in
// their order.
func OutputURLs(output json.RawMessage) (urls []string, err error) {
	err = eachInput(output, func(c *cursor) error {
		raw := c.value()
		var out []json.RawMessage
		var index struct{ URL json.RawMessage }
		switch {
		case raw[0] == '[' && json.Unmarshal(raw, &out) == nil && len(out) == 3:
			index.URL = out[1]
		case raw[0] != '{' || json.Unmarshal(raw, &index) != nil:
			return noInput(raw)
		}
		url, is := jsontext.TextOf(index.URL)
		if !is {
			return noInput(raw)
		}
		urls = append(urls, url)
		return nil
	})
	return urls, err
}

// joinsLabels reports whether groups have all labels of an index, which is then one input of them.
func joinsLabels(grouping string) bool { return grouping == groupNode || grouping == groupAll }

// groups returns the items of a foreach with Foreach.Group, in the order of their labels and nodes, and for
// split in the order of the list. The same list gives the same items.
func groups(f *plan.Foreach, list json.RawMessage) ([]json.RawMessage, error) {
	type key struct {
		label int64
		host  string
	}
	type group struct {
		key
		inputs  []byte // in JSON, unless they are outputs of a parent
		outputs []OutputRange
		last    int
	}
	var all []group
	of, known := ListFrom(f), map[key]int{}
	byLabel, byHost := told(f.Group)
	var in input
	at, next := -1, 0 // next is the group after the last one: inputs mostly have the same labels in the same order
	err := eachInput(list, func(c *cursor) (err error) {
		at++
		var raw []byte
		if in, raw, err = c.input(in.labels); err != nil {
			return fmt.Errorf("input %d: %w", at, err)
		}
		for _, label := range in.labelsIn(f.Group) {
			var k key
			if byLabel {
				k.label = label
			}
			if byHost {
				k.host = in.host
			}
			i, there := next, next < len(all) && all[next].key == k
			if !there {
				i, there = known[k]
			}
			if !there || f.Group == split {
				i = len(all)
				known[k] = i
				all = append(all, group{key: k, last: -1})
			}
			g := &all[i]
			if next = i + 1; next == len(all) {
				next = 0
			}
			if g.last == at { // an index that has a label twice
				continue
			}
			was := g.last
			g.last = at
			switch {
			case of == "" && was >= 0:
				g.inputs = append(append(g.inputs, ','), in.as(f.Group, label, raw)...)
			case of == "":
				g.inputs = append(g.inputs, in.as(f.Group, label, raw)...)
			case was >= 0 && was == at-1:
				g.outputs[len(g.outputs)-1].To = at
			default:
				g.outputs = append(g.outputs, OutputRange{at, at})
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("foreach: %w", err)
	}
	if f.Group != split {
		slices.SortFunc(all, func(a, b group) int { return cmp.Or(cmp.Compare(a.label, b.label), strings.Compare(a.host, b.host)) })
	}
	items := make([]json.RawMessage, len(all))
	for i := range all {
		g := &all[i]
		item := strconv.AppendInt([]byte(`{"label":`), g.label, 10)
		item = jsontext.AppendText(append(item, `,"host":`...), g.host)
		item = append(item, `,"grouping":"`+f.Group+`",`...)
		if of == "" {
			item = append(item, `"inputs":[`...)
		} else {
			item = append(appendName(append(item, `"of":`...), of), `,"outputs":[`...)
		}
		for k, outputs := range g.outputs {
			if k > 0 {
				item = append(item, ',')
			}
			item = outputs.append(item)
		}
		items[i] = append(append(item, g.inputs...), "]}"...)
	}
	return items, CheckItems(len(items))
}

// An input is what groups know of one.
type input struct {
	label  int64
	host   string
	labels []int64 // of an index; nil for any other input
	url    []byte  // of an index, in JSON
}

// labelsIn returns the labels for which groups have the input.
func (in *input) labelsIn(grouping string) []int64 {
	if in.labels == nil || joinsLabels(grouping) {
		return []int64{in.label}
	}
	return in.labels
}

// told reports whether the groups of a grouping are told apart by the labels of their inputs, and by their nodes.
func told(grouping string) (byLabel, byHost bool) {
	return !joinsLabels(grouping), grouping != groupLabel && grouping != groupAll
}

// in reports whether a group has the input.
func (in *input) in(g *Group) bool {
	byLabel, byHost := told(g.Grouping)
	return (!byHost || in.host == g.Host) && (!byLabel || slices.Contains(in.labelsIn(g.Grouping), g.Label))
}

// as returns the input as a group has it: of an index the part with one label, or all of it.
func (in *input) as(grouping string, label int64, raw []byte) []byte {
	switch {
	case in.labels == nil:
		return raw
	case joinsLabels(grouping):
		return fmt.Appendf(nil, `["all",%s,0]`, in.url)
	}
	return fmt.Appendf(nil, `[%d,%s,0]`, label, in.url)
}

// input steps over an output, [label, URL, size], an index of outputs, {"labels": [[label, size], …], "url": URL}, or
// an input, {"label": label, "urls": [URL, …]}, and returns what it is, and its text. The host is that of the first
// URL that names one. The labels take the place of others, which are not needed any more.
func (c *cursor) input(instead []int64) (in input, raw []byte, err error) {
	var label, url, index []byte
	from := c.at
	output := c.b[from] == '['
	c.at++
	if output {
		label = c.value()
		c.skip(',')
		url = c.value()
	}
	for !output && c.kind() == '"' {
		key := c.value()
		c.skip(':')
		if string(key) == `"labels"` {
			if in.labels, err = c.labels(instead[:0]); err != nil {
				return in, nil, err
			}
			c.skip(',')
			continue
		}
		value := c.value()
		c.skip(',')
		switch string(key) {
		case `"label"`:
			label = value
		case `"url"`:
			index = value
		case `"urls"`:
			url = value
		}
	}
	if c.skip('}'); output || in.labels == nil { // its text is short
		c.at = from
		c.value()
	}
	raw = c.b[from:c.at]
	if in.labels != nil {
		url = index
	}
	var urls []string
	if text, is := jsontext.TextOf(url); is {
		urls = []string{text}
	} else if json.Unmarshal(url, &urls) != nil || len(urls) == 0 || output {
		return in, raw, noInput(raw)
	}
	for _, url := range urls {
		if in.host = nodeOf(url); in.host != "" {
			break
		}
	}
	if in.labels == nil {
		in.label, err = readLabel(label)
	} else {
		in.url = url
	}
	return in, raw, err
}

// labels steps over the labels of an index and returns them, which are not nil.
func (c *cursor) labels(labels []int64) ([]int64, error) {
	if labels == nil {
		labels = []int64{}
	}
	if c.kind() != '[' {
		c.value()
		return labels, nil
	}
	c.at++
	for c.kind() == '[' {
		label, is := c.pair()
		if !is {
			var err error
			c.at++
			if label, err = readLabel(c.value()); err != nil {
				return labels, err
			}
			c.skip(',')
			c.value() // the size
			c.skip(']')
			c.skip(',')
		}
		labels = append(labels, label)
	}
	for c.kind() != ']' && c.kind() != 0 { // which is no label
		c.value()
		c.skip(',')
	}
	c.skip(']')
	return labels, nil
}

// pair steps over [label,size] and a comma and returns the label, if both are numbers of few digits and no blanks lie
// between them, as in what workers write. It returns false for anything else.
func (c *cursor) pair() (label int64, is bool) {
	const most = 9
	b, i := c.b, c.at+1
	from := i
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		label = 10*label + int64(b[i]-'0')
	}
	if i == from || i > from+most || i == len(b) || b[i] != ',' {
		return 0, false
	}
	i++
	for from = i; i < len(b) && b[i]-'0' <= 9; i++ {
	}
	if i == from || i == len(b) || b[i] != ']' {
		return 0, false
	}
	if i++; i < len(b) && b[i] == ',' {
		i++
	}
	c.at = i
	return label, true
}

func noInput(raw []byte) error {
	return fmt.Errorf("%s is no input; write {label: 0, urls: [http://…]} for each, or take the outputs of a task", jsontext.Brief(raw))
}

// readLabel reads the label of an input. It is 0 if it is left out.
func readLabel(raw []byte) (int64, error) {
	switch string(raw) {
	case "", "null":
		return 0, nil
	case `"all"`:
		return allLabels, nil
	}
	n, err := strconv.ParseInt(string(raw), 10, 32)
	if err != nil || n < allLabels {
		return 0, fmt.Errorf("label %s is none; a label is an integer from 0 to 2147483647, or all", jsontext.Brief(raw))
	}
	return n, nil
}

// nodeOf returns the host of a URL of a file that a node wrote, and "" for any other URL.
func nodeOf(url string) string {
	rest, is := strings.CutPrefix(url, "disco://")
	if !is {
		if rest, is = strings.CutPrefix(url, "dir://"); !is {
			return ""
		}
	}
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// mostNested is how deep lists of inputs lie in each other, as the plugin disco has it.
const mostNested = 8

// eachInput has each input of a list, and of lists in it, stepped over, in order. It leaves out null. The
// list is valid JSON. Outputs of a large stage have many megabytes, which are read once here.
func eachInput(list json.RawMessage, each func(*cursor) error) error {
	c := cursor{b: list}
	switch c.kind() {
	case 0, 'n':
		return nil
	case '[':
		c.at++
		return c.inputs(each, 0)
	}
	return fmt.Errorf("%s is no list of inputs", jsontext.Brief(list))
}

// A cursor reads valid JSON in place.
type cursor struct {
	b  []byte
	at int
}

// kind skips blanks and returns the first byte of the next value or mark, and 0 at the end.
func (c *cursor) kind() byte {
	for ; c.at < len(c.b); c.at++ {
		switch c.b[c.at] {
		case ' ', '\t', '\r', '\n':
		default:
			return c.b[c.at]
		}
	}
	return 0
}

// skip steps over a mark if it comes next.
func (c *cursor) skip(mark byte) {
	if c.kind() == mark {
		c.at++
	}
}

// value steps over a value and returns it. Lists of many megabytes are read by it, so most bytes cost it one look.
func (c *cursor) value() []byte {
	c.kind()
	b, i, depth := c.b, c.at, 0
loop:
	for ; i < len(b); i++ {
		if depth > 0 && !inLists[b[i]] {
			continue
		}
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			depth++
			continue
		case ']', '}':
			if depth == 0 {
				break loop
			}
			depth--
		case ',', ':', ' ', '\t', '\r', '\n':
			break loop
		default:
			continue
		}
		if depth == 0 {
			i++
			break
		}
	}
	from := c.at
	c.at = min(i, len(b))
	return b[from:c.at]
}

// inLists are the bytes that begin or end something in a list or an object.
var inLists = [256]bool{'"': true, '[': true, ']': true, '{': true, '}': true}

// SplitList returns the values of a JSON array that List made, which share its bytes. Package json would
// check the array once more, which takes ten milliseconds for a MiB.
func SplitList(list json.RawMessage) (values []json.RawMessage) {
	c := cursor{b: list, at: min(1, len(list))}
	for c.kind() != ']' {
		v := c.value()
		if len(v) == 0 { // it is damaged, or cut
			return values
		}
		values = append(values, v)
		c.skip(',')
	}
	return values
}

// inputs reads the rest of a list.
func (c *cursor) inputs(each func(*cursor) error, depth int) error {
	for {
		kind := c.kind()
		if kind == '[' && depth < mostNested { // a list, unless it begins with a label
			from := c.at
			c.at++
			switch c.kind() {
			case '[', '{', 'n', ']':
				if err := c.inputs(each, depth+1); err != nil {
					return err
				}
				continue
			}
			c.at = from
		}
		switch kind {
		case ']':
			c.at++
			return nil
		case 0:
			return nil
		case ',':
			c.at++
		case 'n':
			c.value()
		case '[', '{':
			if err := each(c); err != nil {
				return err
			}
		default:
			return noInput(c.value())
		}
	}
}
