package planfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const schemaFile = "../../docs/plan.schema.json"

func TestThePublishedSchemaIsThatOfTheReader(t *testing.T) {
	if *update {
		if err := os.WriteFile(schemaFile, Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, Schema()) {
		t.Errorf("%s is not what Schema returns; write it anew: go test ./internal/planfile -run Schema -update", schemaFile)
	}
}

// Values to put at each key: each kind of value, and texts that mean something at some key.
var samples = []string{
	`5`, `0`, `2147483647`, `2147483648`, `2.5`, `true`, `null`, `[]`, `{}`, `""`, `" "`, `"make"`, `"a"`, `"my queue"`, `"30s"`, `"1h30m"`, `"3 days"`, `"-5s"`, `"forever"`, `"1%"`, `"100%"`, `"105%"`,
	`"continue"`, `"stop"`, `"retry"`, `"fail"`, `"params"`, `"all_done"`, `"any"`, `"bash"`, `"${{ params.x }}"`, `" ${{ params.x }}"`, `"a ${{ params.x }}"`, `"${{ 'x' }}"`, `"a ${{ '${{' }} x }}"`,
	`["a"]`, `["a", 1, true]`, `["a", ["b"]]`, `["a", null]`, `[5]`, `{"a": 1}`, `{"A": "b"}`, `{"A": 1.5, "B": false}`, `{"A": null}`, `{"A": ["b"]}`, `{"1A": "b"}`, `{"SLUICE_OUTPUT": "b"}`,
	`{"A": {"from_env": "B"}}`, `{"A": {"from_file": "b/c"}}`, `{"A": {"from_env": "B", "from_file": "c"}}`, `{"A": {"from": "B"}}`, `{"A": {}}`,
	`{"A": {"from_env": 5}}`, `{"lines": "f"}`, `{"glob": "*.x"}`, `{"lines": "f", "glob": "g"}`, `{"lines": 5}`, `{"files": "f"}`,
	`{"group": "split"}`, `{"of": "a"}`, `{"group": "split", "of": "a"}`, `{"group": "split", "of": ["a"]}`, `{"group": 5, "of": "a"}`,
	`{"attempts": 3}`, `{"attempts": 3, "delay": "1s", "factor": 1.5, "max": "1m"}`, `{"attempts": 0}`, `{"attempts": 99999999999999999999}`, `{"attempts": 2.5}`, `{"attempts": "3"}`,
	`{"delay": "1s"}`, `{"attempts": 3, "delay": 1}`, `{"attempts": 3, "factor": 0.5}`, `{"attempts": 3, "limit": 1}`, `{"timeout": "30s"}`,
	`{"timeout": 5}`, `{"exec": {"threads": 1}}`, `{"exec": {"threads": 1, "plugin": "exec"}}`, `{"exec": {"plugin": "demo"}}`, `{"exec": {"threads": 0}}`,
	`{"exec": 4}`, `{"exec": {"threads": 1, "sort": "fifo"}}`, `{"a b": {"threads": 1}}`, `{"flavour": 5}`, `{"t": {"run": "make"}}`, `{"t": {"plugin": "demo", "params": {"sleep": "1s"}}}`, `{"t": {"run": "make", "plugin": "demo"}}`,
	`{"t": {"run": ["make", "all"], "needs": [], "continue-on-error": false}}`, `{"my task": {"run": "make"}}`, `{"-t": {"run": "make"}}`, `"-a"`, `{"-a": {"threads": 1}}`, `{"t": "make"}`,
}

// An editor and the reader have to agree, at each key and for each value, whether it may stand there.
func TestTheSchemaTakesWhatTheReaderTakes(t *testing.T) {
	var published *node
	if err := json.Unmarshal(Schema(), &published); err != nil {
		t.Fatal(err)
	}
	for _, name := range planKeys().names() {
		for _, sample := range samples {
			file := map[string]string{"plan": `"p"`, "params": `{"x": ["v"]}`, "tasks": `{"a": {"run": "make"}}`}
			file[name] = sample
			agree(t, published, object(file))
		}
	}
	for _, choices := range []string{`["v"]`, `["v", 5, true]`, `[]`, `[null]`, `[["v"]]`, `[""]`, `["${{ params.y }}"]`, `"v"`} {
		agree(t, published, `{"plan": "p", "params": {"x": null}, "choices": {"x": `+choices+`}, "tasks": {"a": {"run": "make"}}}`)
	}
	for _, grouping := range []string{"split", "group_all", "lots"} {
		agree(t, published, `{"plan": "p", "params": {"x": [{"urls": ["raw://a"]}]}, "tasks": {"t": {"foreach": {"group": "`+grouping+`", "of": "${{ params.x }}"}, "run": "make"}}}`)
	}
	for _, name := range taskKeys().names() {
		for _, sample := range samples {
			task := map[string]string{"run": `"make"`, "needs": `["a"]`}
			switch name {
			case "approve":
				delete(task, "run")
			case "not_submitter":
				delete(task, "run")
				task["approve"] = `"So?"`
			}
			if name == "plugin" || name == "params" {
				delete(task, "run")
				task["plugin"] = `"demo"`
			}
			head := map[string]string{"run": `"make"`}
			if name == "each" {
				delete(task, "needs")
				head["foreach"] = `["x"]`
			}
			if name == "key" {
				task["foreach"] = `["x"]`
			}
			if name == "max_failures" {
				task["foreach"] = `["x"]`
			}
			task[name] = sample
			agree(t, published, `{"plan": "p", "params": {"x": ["v"]}, "tasks": {"a": `+object(head)+`, "t": `+object(task)+`}}`)
		}
	}
}

func object(fields map[string]string) string {
	var parts []string
	for k, v := range fields {
		parts = append(parts, fmt.Sprintf("%q: %s", k, v))
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ", ") + "}"
}

// A schema cannot express these mistakes: they need the plan as a whole, or the command line.
var beyond = regexp.MustCompile("(choices|about): the plan has no param|if is a condition as|if: column|if: [^ ]+: |is not in the plan; add it|has no default; give it|says nothing to do; give it")

func agree(t *testing.T, published *node, file string) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(file))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	_, err := Parse("plan.yaml", []byte(file), Options{Dir: "/work"})
	var errs Errors
	if errors.As(err, &errs) && !slices.ContainsFunc(errs, func(e Error) bool { return !beyond.MatchString(e.Message) }) {
		err = nil
	}
	if why := published.check(published, value); (why == "") != (err == nil) {
		t.Errorf("%s\nthe schema says %q\nthe reader says %v", file, why, err)
	}
}

// A node is a schema as an editor reads it.
type node struct {
	Ref                  string           `json:"$ref"`
	Type                 []string         `json:"type"`
	Enum                 []string         `json:"enum"`
	Pattern              string           `json:"pattern"`
	Minimum              *float64         `json:"minimum"`
	Maximum              *float64         `json:"maximum"`
	MinItems             int              `json:"minItems"`
	MinProperties        int              `json:"minProperties"`
	Items                *node            `json:"items"`
	Properties           map[string]*node `json:"properties"`
	PropertyNames        *node            `json:"propertyNames"`
	AdditionalProperties json.RawMessage  `json:"additionalProperties"`
	Required             []string         `json:"required"`
	AnyOf                []*node          `json:"anyOf"`
	AllOf                []*node          `json:"allOf"`
	Not                  *node            `json:"not"`
	Definitions          map[string]*node `json:"definitions"`
}

// check says what is wrong with a value by the schema, in the words of JSON Schema; "" if nothing is.
func (s *node) check(root *node, v any) string {
	if name, ok := strings.CutPrefix(s.Ref, "#/definitions/"); ok {
		return root.Definitions[name].check(root, v)
	}
	is := typesOf(v)
	if s.Type != nil && !slices.ContainsFunc(s.Type, func(want string) bool { return slices.Contains(is, want) }) {
		return fmt.Sprintf("type: %v, not %v", s.Type, is)
	}
	if s.Not != nil && s.Not.check(root, v) == "" {
		return "not"
	}
	if s.AnyOf != nil && !slices.ContainsFunc(s.AnyOf, func(a *node) bool { return a.check(root, v) == "" }) {
		return "anyOf"
	}
	for _, a := range s.AllOf {
		if why := a.check(root, v); why != "" {
			return why
		}
	}
	switch v := v.(type) {
	case string:
		return s.checkText(v)
	case json.Number:
		if f, _ := v.Float64(); s.Minimum != nil && f < *s.Minimum {
			return "minimum"
		} else if s.Maximum != nil && f > *s.Maximum {
			return "maximum"
		}
	case []any:
		if len(v) < s.MinItems {
			return "minItems"
		}
		for _, e := range v {
			if s.Items != nil {
				if why := s.Items.check(root, e); why != "" {
					return "items: " + why
				}
			}
		}
	case map[string]any:
		return s.checkObject(root, v)
	}
	return ""
}

func (s *node) checkText(v string) string {
	if s.Enum != nil && !slices.Contains(s.Enum, v) {
		return "enum"
	}
	if s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(v) {
		return "pattern: " + s.Pattern
	}
	return ""
}

func (s *node) checkObject(root *node, v map[string]any) string {
	if len(v) < s.MinProperties {
		return "minProperties"
	}
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			return "required: " + name
		}
	}
	for name, e := range v {
		if s.PropertyNames != nil {
			if why := s.PropertyNames.check(root, name); why != "" {
				return "propertyNames: " + why
			}
		}
		if p, ok := s.Properties[name]; ok {
			if why := p.check(root, e); why != "" {
				return name + ": " + why
			}
			continue
		}
		var other *node
		switch more := string(s.AdditionalProperties); {
		case more == "false":
			return "additionalProperties: " + name
		case more != "":
			if err := json.Unmarshal(s.AdditionalProperties, &other); err != nil {
				return err.Error()
			}
			if why := other.check(root, e); why != "" {
				return name + ": " + why
			}
		}
	}
	return ""
}

func typesOf(v any) []string {
	switch v := v.(type) {
	case nil:
		return []string{"null"}
	case bool:
		return []string{"boolean"}
	case string:
		return []string{"string"}
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return []string{"number"}
		}
		return []string{"number", "integer"}
	case []any:
		return []string{"array"}
	}
	return []string{"object"}
}

// People link to a key of the page of plan files, as plan-files.md#task-retry.
func TestThePageOfPlanFilesHasAnAnchorForEachKey(t *testing.T) {
	page, err := os.ReadFile("../../docs/plan-files.md")
	if err != nil {
		t.Fatal(err)
	}
	for of, names := range map[string][]string{"plan": planKeys().names(), "task": taskKeys().names()} {
		for _, name := range names {
			if anchor := fmt.Sprintf("<a id=\"%s-%s\"></a>", of, name); !bytes.Contains(page, []byte(anchor)) {
				t.Errorf("the row of the key %q does not have the anchor %s", name, anchor)
			}
		}
	}
}
