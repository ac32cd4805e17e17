package plan

import (
	"encoding/json"
	"testing"
)

func TestCauses(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  Causes
		bad   bool
	}{
		{[]string{"75", "timeout"}, "75,timeout", false},
		{[]string{"timeout", "signal", "9", "75", "9"}, "9,75,signal,timeout", false},
		{[]string{"255", "1"}, "1,255", false},
		{nil, "", true}, {[]string{"0"}, "", true}, {[]string{"256"}, "", true}, {[]string{"-1"}, "", true}, {[]string{"+1"}, "", true}, {[]string{"01"}, "", true},
		{[]string{"1", ""}, "", true}, {[]string{"Timeout"}, "", true}, {[]string{"1,2"}, "", true},
	} {
		got, err := NewCauses(c.words)
		if got != c.want || (err != nil) != c.bad {
			t.Errorf("%q are %q, %v; want %q", c.words, got, err, c.want)
		}
	}
	r := Retry{Attempts: 3, On: "75,timeout"}
	b, err := json.Marshal(r)
	if err != nil || string(b) != `{"attempts":3,"on":["75","timeout"]}` {
		t.Errorf("it is written %s, %v", b, err)
	}
	var back Retry
	if err := json.Unmarshal(b, &back); err != nil || back != r {
		t.Errorf("and read as %+v, %v", back, err)
	}
	for _, bad := range []string{`{"on":[]}`, `{"on":["0"]}`, `{"on":"75"}`, `{"not_on":[75]}`} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil {
			t.Errorf("%s is read as %+v", bad, back)
		}
	}
}

func TestWhatCausesHave(t *testing.T) {
	code := func(n int) *Exit { return &Exit{Code: n} }
	for _, c := range []struct {
		causes Causes
		reason Reason
		exit   *Exit
		want   bool
	}{
		{"75,timeout", "", code(75), true}, {"75,timeout", "", code(7), false}, {"75,timeout", ReasonTimeout, nil, true},
		{"75", ReasonTimeout, code(75), false}, // how a stopped command ends says nothing
		{"signal", ReasonSignal, &Exit{Code: -1, Signal: "SIGKILL"}, true}, {"1", ReasonSignal, &Exit{Code: -1, Signal: "SIGKILL"}, false},
		{"1", ReasonError, nil, false}, {"", "", code(1), false},
	} {
		if got := c.causes.Have(c.reason, c.exit); got != c.want {
			t.Errorf("%q have %q, %+v: %v, want %v", c.causes, c.reason, c.exit, got, c.want)
		}
	}
}
