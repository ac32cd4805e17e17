package secret_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/plan"
)

func secretsOf(names ...string) secret.Names {
	return secret.Of([]plan.Queue{{QueueSettings: plan.QueueSettings{Secrets: names}}})
}

func TestWhichNamesAreSecret(t *testing.T) {
	s := secret.Of([]plan.Queue{{QueueSettings: plan.QueueSettings{Secrets: []string{"password", "*_key"}}}, {}, {QueueSettings: plan.QueueSettings{Secrets: []string{"pin*code", "*a*b*"}}}})
	for name, want := range map[string]bool{
		"password": true, "PassWord": true, "passwords": false, "my_password": false, "": false,
		"api_key": true, "_KEY": true, "key": false, "api_keys": false,
		"pincode": true, "pin-code": true, "pinode": false,
		"xxaxxbxx": true, "ab": true, "ba": false,
	} {
		if got := s.Named(name); got != want {
			t.Errorf("%q is secret: %v, want %v", name, got, want)
		}
	}
	if secretsOf().Named("") || !secretsOf().None() || !secretsOf("*").Named("anything") {
		t.Error("no names keep something secret, or * does not keep all")
	}
}

func TestNamesOfSecrets(t *testing.T) {
	got, err := secret.CheckNames([]string{"Token", "password", "TOKEN", "*_Key"})
	if err != nil || !slices.Equal(got, []string{"*_key", "password", "token"}) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := secret.CheckNames([]string{}); len(got) > 0 || err != nil {
		t.Errorf("none are %q, %v", got, err)
	}
	many := make([]string, 201)
	for i := range many {
		many[i] = strings.Repeat("x", i%200+1) + string(rune('a'+i/200))
	}
	for _, bad := range [][]string{{""}, {" a"}, {"a\n"}, {strings.Repeat("a", 201)}, many} {
		if _, err := secret.CheckNames(bad); err == nil {
			t.Errorf("%.40q are names", bad)
		}
	}
}

func TestSecretsAreHidden(t *testing.T) {
	s := secretsOf("password", "*_key", "login")
	for _, c := range []struct{ name, params, want string }{
		{"at any depth, in objects and lists", `{"a":[{"b":{"Password":"x"}}],"c":1}`, `{"a":[{"b":{"Password":"***"}}],"c":1}`},
		{"whatever they are", `{"password":12,"api_key":[1,{"a":2}],"login":{"user":"ann"}}`, `{"api_key":"***","login":"***","password":"***"}`},
		{"but null says nothing", `{"password":null}`, `{"password":null}`},
		{"where they stand elsewhere, too", `{"password":"hunter22","run":["x","--pw=hunter22"],"hunter22":"a"}`, `{"***":"a","password":"***","run":["x","--pw=***"]}`},
		{"also as numbers", `{"password":"1234","n":1234,"m":12345}`, `{"m":12345,"n":"***","password":"***"}`},
		{"also those inside of them", `{"login":{"user":"annette"},"mail":"annette@example.com"}`, `{"login":"***","mail":"***@example.com"}`},
		{"the longer one first", `{"password":"abcd","api_key":"abcdefgh","x":"abcdefgh abcd"}`, `{"api_key":"***","password":"***","x":"*** ***"}`},
		{"as JSON in a text", `{"password":"a\"bcd","x":"{\"p\":\"a\\\"bcd\"}"}`, `{"password":"***","x":"{\"p\":\"***\"}"}`},
		{"but what is short stands for much else", `{"password":"ab","x":"cabs"}`, `{"password":"***","x":"cabs"}`},
		{"each line of a key", `{"api_key":"-----BEGIN\nMIIEvQIBADAN\n","x":"MIIEvQIBADAN"}`, `{"api_key":"***","x":"***"}`},
		{"numbers keep their digits", `{"n":123456789012345678901234567890.10,"password":1}`, `{"n":123456789012345678901234567890.10,"password":"***"}`},
		{"what is no JSON is hidden whole", `{"password":"x"`, `"***"`},
		{"more than a value, too", `{} {"password":"x"}`, `"***"`},
	} {
		got := s.Hide(json.RawMessage(c.params))
		if string(got) != c.want {
			t.Errorf("%s: %s is shown as %s, want %s", c.name, c.params, got, c.want)
		}
		if again := s.Hide(got); string(again) != string(got) {
			t.Errorf("%s: hidden twice it is %s", c.name, again)
		}
	}
	if in := json.RawMessage(`{ "password": "x" }`); string(secretsOf().Hide(in)) != string(in) {
		t.Error("where nothing is secret something is hidden")
	}
	if got := s.Hide(nil); got != nil {
		t.Errorf("nothing is shown as %s", got)
	}
}

func TestATaskIsShownWithoutItsSecrets(t *testing.T) {
	was := plan.Task{
		Params: json.RawMessage(`{"password":"hunter22"}`), Output: json.RawMessage(`"it was hunter22"`), Detail: "no hunter22 there",
		Definition: plan.Definition{Description: "as hunter22", ItemKey: "hunter22,1", If: `params.o == "hunter22"`, Approve: &plan.Approval{Question: "with hunter22?"}, Foreach: &plan.Foreach{List: json.RawMessage(`[{"password":"x"},"hunter22"]`)}},
	}
	got := was
	secretsOf("password").HideTask(&got)
	text, err := json.Marshal(got)
	if err != nil || strings.Contains(string(text), "hunter22") || strings.Contains(string(text), `"x"`) {
		t.Errorf("it is shown as %s, %v", text, err)
	}
	if string(was.Foreach.List) != `[{"password":"x"},"hunter22"]` || was.Approve.Question != "with hunter22?" {
		t.Error("what is shown is what is kept")
	}
}

func TestAMaskIsNoValue(t *testing.T) {
	s := secretsOf("password")
	for params, refused := range map[string]bool{
		`{"password":"***"}`: true, `{"a":[{"PASSWORD":"***"}]}`: true, `{"password":"a***"}`: false, `{"x":"***"}`: false, ``: false, `{"password":null}`: false,
	} {
		if err := s.CheckGiven("it", json.RawMessage(params)); errors.Is(err, plan.ErrSecret) != refused || err != nil != refused {
			t.Errorf("%s: %v", params, err)
		}
	}
}

func TestWhatIsAskedAboutASecret(t *testing.T) {
	s := secretsOf("password")
	for _, c := range []struct {
		path, value string
		want        bool
	}{
		{"params.password", "", true}, {"params.a.0.Password.b", "", true}, {"params.a", "", false},
		{"params", `{"password":1}`, true}, {"params.a", `{"b":[{"password":1}]}`, true}, {"params.a", `{"b":1}`, false}, {"params.a", `{`, true},
	} {
		if got := s.Within(json.RawMessage(c.value), c.path); got != c.want {
			t.Errorf("%s is %s: %v, want %v", c.path, c.value, got, c.want)
		}
	}
}

func TestWhoTakesSecretsOff(t *testing.T) {
	was := &plan.Queue{Name: "q", QueueSettings: plan.QueueSettings{Secrets: []string{"a", "b"}}}
	for _, c := range []struct {
		now    []string
		anyway bool
		ok     bool
	}{{[]string{"a", "b", "c"}, false, true}, {[]string{"a"}, false, false}, {nil, false, false}, {nil, true, true}} {
		if err := secret.CheckUnhidden(was, &plan.Queue{QueueSettings: plan.QueueSettings{Secrets: c.now}}, c.anyway); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestASecretIsHiddenHoweverJSONSpellsIt(t *testing.T) {
	const hidden = `Wx9tokenä/"b<🔑`
	params, err := json.Marshal(map[string]string{"token": hidden})
	if err != nil {
		t.Fatal(err)
	}
	values := secret.Names{}.And([]string{"token"}).Values(params)
	for name, text := range map[string]string{
		"as it is":         hidden,
		"Go":               `Wx9tokenä/\"b\u003c🔑`,
		"Python":           `Wx9token\u00e4/\"b<\ud83d\udd11`,
		"PHP":              `Wx9token\u00e4\/\"b<\ud83d\udd11`,
		"PHP, unescaped":   `Wx9tokenä\/\"b<🔑`,
		"Java":             `Wx9token\u00E4/\"b<\uD83D\uDD11`,
		"Java, with <>&":   `Wx9token\u00E4/\"b\u003C\uD83D\uDD11`,
		"JavaScript, Ruby": `Wx9tokenä/\"b<🔑`,
	} {
		if got := secret.HideText("it is "+text+".", values); got != "it is ***." {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := string(secret.Names{}.And([]string{"token"}).Hide(json.RawMessage(`{"token":"a\/b-c\/d","said":"is \"a\\/b-c\\/d\""}`))); got != `{"said":"is \"***\"","token":"***"}` {
		t.Errorf("a text with JSON in it is shown as %s", got)
	}
}
