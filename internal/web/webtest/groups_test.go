//go:build browser

package webtest

import "testing"

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
