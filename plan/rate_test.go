package plan

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestRatesAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]Rate{
		"10/s":           {10, Duration(time.Second), 0},
		"10/1s":          {10, Duration(time.Second), 0},
		"600/1h,burst=2": {600, Duration(time.Hour), 2},
		"1/h":            {1, Duration(time.Hour), 0},
		"5/d":            {5, Duration(24 * time.Hour), 0},
		"5/1d12h":        {5, Duration(36 * time.Hour), 0},
		"9/1.5w,burst=1": {9, Duration(252 * time.Hour), 1},
		"none":           {},
	} {
		r, err := ParseRate(text)
		if err != nil || r != want {
			t.Errorf("%q is %+v, %v; want %+v", text, r, err, want)
		}
		if r == (Rate{}) {
			continue
		}
		if again, err := ParseRate(r.String()); err != nil || again != r {
			t.Errorf("%q is written %q, and that is %+v, %v", text, r, again, err)
		}
	}
}

func TestRatesThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"": "is no rate", "10": "is no rate", "10/": "is no rate", "/s": "is no rate", "x/s": "is no rate", "10/s,": "is no rate", "10/s,burst=": "is no rate",
		"10/parsec": "is no rate", "1/1.2.3d": "is no rate", "1/99999999999999999999d": "is no rate", "1/400d": "too long", "0/s": "at least 1 task", "-1/s": "at least 1 task", "1/0s": "longer than 0", "10/-1s": "is no rate", "0/0s": "at least 1 task",
		"10/s,burst=0": "burst is 0", "10/s,burst=-1": "burst is -1", "10/s,burst=2000000": "burst is 2000000",
		"10001/s": "too often", "11/1ms": "too often", "1/216000h": "too long", "1/960h,burst=10": "too long", "99999999999999999999/s": "is no rate",
	} {
		if r, err := ParseRate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %+v, %v; want %q", text, r, err, want)
		}
	}
}

// Another program may have written any settings.
func TestARateThatCannotBeIsNone(t *testing.T) {
	for _, text := range []string{`{"starts":0,"per":"1s"}`, `{"starts":5}`, `{"per":"1s"}`, `7`, `{"starts":1,"per":"-5s"}`, `{"starts":1e300,"per":"1s"}`} {
		if s := QueueSettingsOf(`{"rate":` + text + `,"on_lost":"fail"}`); s.Rate != (Rate{}) || s.OnLost != OnLostFail {
			t.Errorf("%s is read as %+v", text, s)
		}
	}
	s := QueueSettings{Rate: Rate{10, Duration(time.Second), 0}}
	if b, err := json.Marshal(s.Rate); err != nil || string(b) != `{"starts":10,"per":"1s"}` {
		t.Errorf("it is written %s, %v", b, err)
	}
	if read := QueueSettingsOf(s.Text()); read.Rate != s.Rate {
		t.Errorf("%s is read as %+v", s.Text(), read)
	}
}
