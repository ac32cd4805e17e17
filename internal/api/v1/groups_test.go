package v1_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
)

func TestAnAddressThatNodesDoNotReachIsRefusedWithItsPlace(t *testing.T) {
	st := model.New(model.Options{})
	refuses := false
	s := serveStore(t, st, v1.Config{Store: st, Receiver: func(uri string) error {
		if refuses || strings.Contains(uri, "10.1.2.3") {
			return errors.New("nobody reaches " + uri)
		}
		return nil
	}})
	ask := func(want int, says, method, path, body string) {
		t.Helper()
		if status, text := s.ask(method, path, body); status != want || !strings.Contains(text, says) {
			t.Errorf("%s %s %s answers %d %s, want %d with %s", method, path, body, status, text, want, says)
		}
	}
	ask(422, `"location":"body.success_uri"`, "POST", "/groups", `{"name": "acme", "success_uri": "http://10.1.2.3/"}`)
	ask(404, "", "GET", "/groups/acme", "")
	ask(201, `"success_uri":"http://192.0.2.1/"`, "POST", "/groups", `{"name": "acme", "success_uri": "http://192.0.2.1/"}`)
	ask(422, `"location":"body.dead_letter_uri"`, "PUT", "/groups/acme", `{"success_uri": "http://192.0.2.1/", "dead_letter_uri": "http://10.1.2.3/"}`)
	refuses = true // a group may be paused by a server that reaches less
	ask(200, `"paused":true`, "PUT", "/groups/acme", `{"success_uri": "http://192.0.2.1/", "paused": true}`)
	ask(422, `"location":"body.success_uri"`, "PUT", "/groups/acme", `{"success_uri": "http://192.0.2.2/"}`)
}
