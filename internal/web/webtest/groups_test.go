//go:build browser

package webtest

import (
	"regexp"
	"testing"

	"github.com/seed-1177d267/sluice/internal/api"
)

func TestGroupsAreShownPausedAndResumed(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.browse(light)
	b.open("/ui/groups")
	b.sees("main", "There are no groups yet.")
	s.groups()
	b.sees(".groups", "rate: 50 in 1m0s, 20 at once")
	b.sees(".groups .in2", "calendars")
	b.click(".queue button[aria-label='Pause acme']", "Pause")
	b.sees(".groups", "its parent is paused")
	b.until(`[...document.querySelectorAll('.groups .badge')].every((e) => e.innerText === 'paused')`)
	b.click(".queue button[aria-label='Resume acme']", "Resume")
	b.until(`[...document.querySelectorAll('.groups .badge')].every((e) => e.innerText === 'open')`)
	b.sees(".groups", "rate: 50 in 1m0s, 20 at once") // the other settings stay
	b.open("/ui/queues")
	b.sees(".queues", "group: acme")
	b.until(`[...document.querySelectorAll('#top nav a')].some((a) => a.innerText === 'Groups' && !a.hidden)`)
}

// groups makes a group with a queue, and one in it with another queue.
func (s *site) groups() {
	s.Helper()
	const long = "acme-mail-and-calendars-of-all-branches"
	s.ask("POST", "/groups", "application/json", `{"name": "acme", "weight": 4, "rate": {"starts": 50, "per": "1m", "burst": 20}}`)
	s.ask("POST", "/groups", "application/json", `{"name": "`+long+`", "parent": "acme"}`)
	s.ask("POST", "/queues", "application/json", `{"name": "files", "plugin": "exec", "threads": 3, "group": "acme", "weight": 2}`)
	s.ask("POST", "/queues", "application/json", `{"name": "calendars", "plugin": "exec", "threads": null, "group": "`+long+`"}`)
}

// A dead letter shows what was sent and what came back, and runs again.
func TestDeadLettersAreReadAndRunAgain(t *testing.T) {
	t.Parallel()
	s := serve(t)
	oste := func(method, path, body string) {
		t.Helper()
		s.ask(method, api.OSTERoot+path, "application/json", body)
	}
	const of = "/activity-types/acme.music.republish"
	oste("POST", "/companies", `{"Name": "acme"}`)
	oste("POST", "/solutions", `{"Company": "acme", "Name": "music"}`)
	oste("POST", "/activity-types", `{"Solution": "acme.music", "Name": "republish", "Verb": "POST", "UriPattern": "`+s.url+`/song/{SongId}", "ObjectIdRef": ["SongId"]}`)
	for _, song := range []string{"17", "18"} {
		oste("POST", "/point-in-time-activities", `{"Date": "2026-01-01T00:00:00Z", "ActivityType": "acme.music.republish", "Parameter": {"SongId": `+song+`, "lang": "de"}}`)
	}
	s.start(regexp.MustCompile(`.`), "worker", "--allow-net", "127.0.0.1")
	b := s.browse(light)
	b.open("/ui/groups")
	b.sees(".groups .in2", "acme.music.republish")
	b.click(".groups .in2 a", "acme.music.republish")
	b.sees(".toolbar", "2: 2 by 404")
	b.click(".activity:first-child summary", "404 Not Found")
	b.sees(".tries", `"lang": "de"`)
	b.sees(".tries", "/song/1")
	b.sees(".tries", "404")
	oste("PATCH", of, `{"Verb": "GET", "UriPattern": "`+s.url+`/healthz?song={SongId}"}`)
	b.click(".activity button[aria-label='Run again: 17']", "Run again")
	b.sees(".toolbar", "1: 1 by 404")
	b.click(".head button", "Run all again")
	b.sees("main", "There are no dead letters.")
	b.sees(".said", "1 activity queued again.")
	b.open("/ui/groups/acme.music.republish?show=succeeded")
	b.sees(".activities", "17")
	b.sees(".activities", "18")
}
