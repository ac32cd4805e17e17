package config

import (
	"slices"
	"testing"
)

func TestWhatChangedIsTold(t *testing.T) {
	const rest = `"database": "d", "auth": {"disbatchd": "a", "disbatch_web": "b", "task_runner": "c", "plugin": "d"}, `
	for _, c := range []struct {
		name, before, after string
		want                []string
	}{
		{"nothing", `{` + rest + `"mongohost": "h"}`, `{"mongohost": "h", # as before` + "\n" + rest + `}`, nil},
		{"the host", `{` + rest + `"mongohost": "h"}`, `{` + rest + `"mongohost": "i"}`, []string{"mongohost"}},
		{"a password of it", `{` + rest + `"mongohost": "mongodb://u:p@h"}`, `{` + rest + `"mongohost": "mongodb://u:q@h"}`, []string{"mongohost"}},
		{"a password of auth", `{"mongohost": "h", ` + rest + `}`, `{"mongohost": "h", "database": "d", "auth": {"disbatchd": "x"}}`, []string{"auth.disbatchd"}},
		{"an attribute that is gone", `{"mongohost": "h", ` + rest + `"attributes": {"ssl": 1}}`, `{"mongohost": "h", ` + rest + `}`, []string{"attributes.ssl"}},
		{"an attribute that is new", `{"mongohost": "h", ` + rest + `}`, `{"mongohost": "h", ` + rest + `"attributes": {"ssl": 1}}`, []string{"attributes.ssl"}},
		{"the log, and what has no effect", `{"mongohost": "h", ` + rest + `}`, `{"mongohost": "h", ` + rest + `"log4perl": {"level": "WARN"}, "views_dir": "/w"}`, nil},
		{"what a server beside the node serves", `{"mongohost": "h", ` + rest + `}`, `{"mongohost": "h", ` + rest + `"web_root": "/w", "monitoring": true}`, []string{"monitoring", "web_root"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, err := Parse("config.json", []byte(c.before))
			if err != nil {
				t.Fatal(err)
			}
			after, err := Parse("config.json", []byte(c.after))
			if err != nil {
				t.Fatal(err)
			}
			if got := after.Changed(before); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
