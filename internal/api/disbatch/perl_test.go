package disbatch

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// The second of each is what Perl's JSON modules print with canonical, and the third with pretty as well.
func TestEncode(t *testing.T) {
	id, err := plan.ParseID("571f8951b75bf335634ec271")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		value        any
		line, pretty string
	}{
		{list{}, "[]", "[]\n"},
		{object{}, "{}", "{}\n"},
		{[]string{"Disbatch::Plugin::Demo"}, `["Disbatch::Plugin::Demo"]`, "[\n   \"Disbatch::Plugin::Demo\"\n]\n"},
		{object{"c": "x/\x7f\x01<&>\"\\\t\n\r\f\b\u2028é", "a": list{1, object{"b": list{}}, object{}}, "d": nil, "e": 1.5},
			"{\"a\":[1,{\"b\":[]},{}],\"c\":\"x/\x7f\\u0001<&>\\\"\\\\\\t\\n\\r\\f\\b\u2028é\",\"d\":null,\"e\":1.5}",
			"{\n   \"a\" : [\n      1,\n      {\n         \"b\" : []\n      },\n      {}\n   ],\n   \"c\" : \"x/\x7f\\u0001<&>\\\"\\\\\\t\\n\\r\\f\\b\u2028é\",\n   \"d\" : null,\n   \"e\" : 1.5\n}\n"},
		{object{"_id": id}, `{"_id":{"$oid":"571f8951b75bf335634ec271"}}`, "{\n   \"_id\" : {\n      \"$oid\" : \"571f8951b75bf335634ec271\"\n   }\n}\n"},
		{time.Date(2019, 1, 23, 20, 42, 56, 574e6, time.FixedZone("", 3600)), `"2019-01-23T19:42:56"`, "\"2019-01-23T19:42:56\"\n"},
		{json.RawMessage(`{"b": 1.50, "a": true}`), `{"a":true,"b":1.50}`, "{\n   \"a\" : true,\n   \"b\" : 1.50\n}\n"},
		{1548272576.574, "1548272576.574", "1548272576.574\n"},
		{float64(-2), "-2", "-2\n"},
		{"\xff", "\"\uFFFD\"", "\"\uFFFD\"\n"},
	} {
		if got := string(encode(c.value, false)); got != c.line {
			t.Errorf("got  %s\nwant %s", got, c.line)
		}
		if got := string(encode(c.value, true)); got != c.pretty {
			t.Errorf("got  %s\nwant %s", got, c.pretty)
		}
	}
}

func TestWantsPage(t *testing.T) {
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/html": true, "text/html;q=0.9": false, "text/html, application/json": true,
		"text/html;q=0.9,application/json;q=0.9": true, "text/html;q=0.8,application/json;q=0.9": false,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true, "text/html;q=nonsense": false, "text/html;level=1;q=1": true, ",;,": false,
	} {
		r := newRequest(t, accept)
		if got := wantsPage(r); got != want {
			t.Errorf("Accept: %s: a page: %v", accept, got)
		}
	}
}

// Held, cancelled and orphaned count as queued; what is no code counts nowhere.
func TestReportCounts(t *testing.T) {
	q := store.QueueView{Statuses: map[plan.Status]int{
		plan.Unknown: 1, -9: 2, plan.Orphaned: 4, plan.Cancelled: 8, plan.Held: 16, plan.Terminated: 32, plan.Queued: 64,
		plan.Claimed: 128, plan.Running: 256, plan.Succeeded: 512, plan.Failed: 1024, 7: 2048,
	}}
	r := report(&q)
	if got, want := fmt.Sprint(r["queued"], r["running"], r["completed"]), fmt.Sprint(2+4+8+16+32+64, 128+256, 512+1024+2048); got != want {
		t.Errorf("queued, running, completed: %s, want %s", got, want)
	}
}

func newRequest(t *testing.T, accept string) *http.Request {
	t.Helper()
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Accept", accept)
	return r
}
