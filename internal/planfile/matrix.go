package planfile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// An axis is a field of the items of a matrix, and its values as JSON.
type axis struct {
	name   string
	values []json.RawMessage
	given  bool // by a param, so that an exclusion need not match
}

// mostExclusions is how many products an exclude leaves out at most: each is compared with all.
const mostExclusions = 1000

// readMatrix reads {matrix: {FIELD: [VALUE, …], …}, exclude: [{FIELD: VALUE, …}, …]} into the list of
// the products, the first field slowest. It returns false if something is wrong with it.
func (t *task) readMatrix(n *yaml.Node, f *plan.Foreach) bool {
	var axes []axis
	var exclude *yaml.Node
	ok := true
	t.r.entries(n, "key", func(k, v *yaml.Node) {
		switch k.Value {
		case "matrix":
			if ok = t.r.fits(entry{k, v}, "matrix", mapping, matrixShape); ok {
				axes, ok = t.readAxes(follow(v))
			}
		case "exclude":
			if t.r.fits(entry{k, v}, "exclude", list, excludeShape) {
				exclude = follow(v)
			} else {
				ok = false
			}
		default:
			t.r.add(fault{at: t.r.at(k), text: fmt.Sprintf("a foreach with a matrix has no key %q", k.Value), word: k.Value,
				known: []string{"matrix", "exclude"}, none: "; it has matrix and exclude"})
			ok = false
		}
	})
	if ok && axes == nil {
		t.r.errorf(n, "exclude leaves out products of a matrix; add matrix, as in {matrix: {os: [linux, mac]}}")
		return false
	}
	if !ok {
		return false
	}
	size := 1
	for _, a := range axes {
		if size *= len(a.values); size > plan.MaxItems {
			t.r.errorf(n, "the matrix has more than %d products; leave out values, or put several into one", plan.MaxItems)
			return false
		}
	}
	leaves, ok := t.readExcluded(exclude, axes)
	if !ok {
		return false
	}
	used := make([]bool, len(leaves))
	items := []byte{'['}
	for i := range size {
		at, rest := make([]int, len(axes)), i
		for k := len(axes) - 1; k >= 0; k-- {
			at[k], rest = rest%len(axes[k].values), rest/len(axes[k].values)
		}
		if left := slices.IndexFunc(leaves, func(l []int) bool { return leavesOut(l, at) }); left >= 0 {
			for k := range leaves {
				used[k] = used[k] || leavesOut(leaves[k], at)
			}
			continue
		}
		if len(items) > 1 {
			items = append(items, ',')
		}
		for k, a := range axes {
			items = append(items, "{,"[min(k, 1)])
			items = append(jsontext.AppendText(items, a.name), ':')
			items = append(items, a.values[at[k]]...)
		}
		items = append(items, '}')
	}
	given := slices.ContainsFunc(axes, func(a axis) bool { return a.given })
	if i := slices.Index(used, false); i >= 0 && !given {
		t.r.errorf(follow(exclude.Content[i]), "exclude: no product of the matrix has these values, or an exclusion before has left them out")
		return false
	}
	if len(items) == 1 {
		t.r.errorf(exclude, "exclude leaves nothing of the matrix")
		return false
	}
	f.List = append(items, ']')
	if f.Key = keyOfMatrix(axes); compiler.CheckForeach(f) != nil { // two products look alike, or one is long
		f.Key = ""
	}
	return true
}

// keyOfMatrix returns the key of the items of a matrix, which has the value of each field: linux,1.25.
func keyOfMatrix(axes []axis) string {
	parts := make([]string, len(axes))
	for k, a := range axes {
		parts[k] = "${{ item." + a.name + " }}"
	}
	return strings.Join(parts, ",")
}

// anyValue and noValue stand for a place in an exclusion.
const (
	anyValue = -1
	noValue  = -2
)

// leavesOut reports whether an exclusion leaves out a product. Both are places of values by axis.
func leavesOut(exclusion, at []int) bool {
	for k, want := range exclusion {
		if want != anyValue && want != at[k] {
			return false
		}
	}
	return true
}

// readAxes reads the fields of a matrix.
func (t *task) readAxes(n *yaml.Node) (axes []axis, ok bool) {
	ok = true
	t.r.entries(n, "field", func(k, v *yaml.Node) {
		a := axis{name: k.Value}
		if !fieldName.MatchString(a.name) {
			t.r.errorf(k, "a field of a matrix has letters, digits and _, and no digit in front, not %q", a.name)
			ok = false
			return
		}
		switch v = follow(v); {
		case v.Kind == yaml.SequenceNode:
			for _, c := range v.Content {
				a.values = append(a.values, t.r.appendJSON(nil, c))
			}
		case !t.readAxis(v, &a):
			ok = false
			return
		default:
			a.given = true
		}
		if len(a.values) == 0 {
			t.r.errorf(v, "the field %q of the matrix has no value; give it one, or leave it out", a.name)
			ok = false
		}
		axes = append(axes, a)
	})
	if ok && len(axes) == 0 {
		t.r.errorf(n, "the matrix has no field; give it lists of values, as in {os: [linux, mac]}")
		return nil, false
	}
	return axes, ok
}

// readAxis reads the values of a field from a param.
func (t *task) readAxis(v *yaml.Node, a *axis) bool {
	whole := strings.TrimSpace(v.Value)
	paths := expr.Paths(whole)
	if v.Kind != yaml.ScalarNode || len(paths) != 1 || !strings.HasPrefix(whole, "${{") || strings.Index(whole, "}}") != len(whole)-2 {
		t.r.errorf(v, "the field %q of the matrix must be %s", a.name, axisShape.want)
		return false
	}
	if word, _, _ := strings.Cut(paths[0], "."); word != "params" {
		t.r.errorf(v, "the field %q of the matrix is known as the plan is submitted: ${{ %s }} is no param; to go over what a task gives write foreach: ${{ %s }}", a.name, paths[0], paths[0])
		return false
	}
	t.r.noteExpressions(v)
	value, known, err := expr.Lookup(paths[0], t.r.scope)
	switch {
	case err != nil || !known: // what stands at it says so itself
		a.values = []json.RawMessage{json.RawMessage(`""`)}
		return true
	case t.r.draft && string(value) == `""`:
		a.values = []json.RawMessage{value}
		return true
	}
	if _, err := rules.ParseItems(value); err != nil {
		is := "${{ " + paths[0] + " }}"
		t.r.errorf(v, "%v", t.r.secrets().Uncited(is, fmt.Errorf("%s: %w", is, err)))
		return false
	}
	return json.Unmarshal(value, &a.values) == nil
}

// readExcluded reads which products are left out: the places of values by axis.
func (t *task) readExcluded(n *yaml.Node, axes []axis) (leaves [][]int, ok bool) {
	if n == nil {
		return nil, true
	}
	if len(n.Content) > mostExclusions {
		t.r.errorf(n, "exclude has %d products; at most %d are left out", len(n.Content), mostExclusions)
		return nil, false
	}
	ok = true
	for _, c := range n.Content {
		c = follow(c)
		if !t.r.fits(entry{c, c}, "an exclusion", mapping, exclusionShape) {
			ok = false
			continue
		}
		leave := slices.Repeat([]int{anyValue}, len(axes))
		t.r.entries(c, "field", func(k, v *yaml.Node) {
			i := slices.IndexFunc(axes, func(a axis) bool { return a.name == k.Value })
			if i < 0 {
				known := make([]string, len(axes))
				for i, a := range axes {
					known[i] = a.name
				}
				t.r.add(fault{at: t.r.at(k), text: fmt.Sprintf("exclude: the matrix has no field %q", k.Value), word: k.Value, known: known,
					none: "; it has " + strings.Join(known, ", ")})
				ok = false
				return
			}
			value := t.r.appendJSON(nil, v)
			if leave[i] = slices.IndexFunc(axes[i].values, func(is json.RawMessage) bool { return jsontext.Same(is, value) }); leave[i] < 0 && axes[i].given {
				leave[i] = noValue
			} else if leave[i] < 0 {
				t.r.errorf(follow(v), "exclude: the field %q of the matrix has no such value", k.Value)
				ok = false
			}
		})
		leaves = append(leaves, leave)
	}
	return leaves, ok
}
