package planfile

import (
	"bytes"
	"encoding/json"
)

// A schema is the part of JSON Schema (draft 7, which editors know) that a plan file needs. It is also what the reader asks before it
// reads a value: which kinds of value may stand there, and how to say so.
type schema struct {
	Schema               string             `json:"$schema,omitempty"`
	ID                   string             `json:"$id,omitempty"`
	Title                string             `json:"title,omitempty"`
	Description          string             `json:"description,omitempty"`
	Ref                  string             `json:"$ref,omitempty"`
	Type                 []string           `json:"type,omitempty"`
	Enum                 []string           `json:"enum,omitempty"`
	Pattern              string             `json:"pattern,omitempty"`
	Minimum              *float64           `json:"minimum,omitempty"`
	Maximum              *float64           `json:"maximum,omitempty"`
	MinItems             int                `json:"minItems,omitempty"`
	MinProperties        int                `json:"minProperties,omitempty"`
	Items                *schema            `json:"items,omitempty"`
	Properties           map[string]*schema `json:"properties,omitempty"`
	PropertyNames        *schema            `json:"propertyNames,omitempty"`
	AdditionalProperties any                `json:"additionalProperties,omitempty"` // false, or a *schema
	Required             []string           `json:"required,omitempty"`
	AnyOf                []*schema          `json:"anyOf,omitempty"`
	AllOf                []*schema          `json:"allOf,omitempty"`
	Not                  *schema            `json:"not,omitempty"`
	Definitions          map[string]*schema `json:"definitions,omitempty"`

	want  string // completes "must be …"
	must  bool   // it cannot be left out
	quote bool   // it may be any text, so what is a number could be meant as one
}

// kinds returns what a value may be by the schema's types.
func (s *schema) kinds() kind {
	var k kind
	for _, t := range s.Type {
		k |= map[string]kind{
			"string": text, "integer": number, "number": number, "boolean": boolean, "null": null, "array": list, "object": mapping,
		}[t]
	}
	for _, a := range s.AnyOf {
		k |= a.kinds()
	}
	return k
}

// about returns the schema with a description of its own.
func (s *schema) about(description string) *schema {
	c := *s
	c.Description = description
	return &c
}

// SchemaAddress is where the schema of the newest version is. Editors read it.
const SchemaAddress = "https://github.com/seed-1177d267/sluice/raw/main/docs/plan.schema.json"

// Schema returns a JSON Schema of plan files for editors, indented. It is made from the tables that the reader uses.
func Schema() []byte {
	file := planKeys().schema()
	file.Schema, file.ID = "http://json-schema.org/draft-07/schema#", SchemaAddress
	file.Title = "A plan of Sluice"
	file.Required = []string{"plan", "tasks"}
	task := taskKeys().schema()
	task.Not = &schema{Required: []string{"run", "plugin"}}
	file.Definitions = map[string]*schema{"task": task}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(file); err != nil {
		panic(err) // only values that have JSON are in it
	}
	return b.Bytes()
}
