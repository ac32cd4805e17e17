package items

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func TestAnItemIsLabelledInFewWords(t *testing.T) {
	long := strings.Repeat("x", 50)
	for item, want := range map[string]string{
		`"alice@example.com"`: "alice@example.com", `{"user": "ü", "n": [1, 2]}`: `{"user":"ü","n":[1,2]}`, `5`: "5", `null`: "null", `""`: `""`,
		`{"label":3,"host":"n1","grouping":"group_node_label","of":"map","outputs":[1]}`: "3 n1", `{"label":-1,"host":"","grouping":"split"}`: "all",
		`"a\nb\u001b[31m"`: "a b", `"` + long + `"`: long[:39] + "…", `12345678901234567890`: "12345678901234567890", ``: "", `{`: "",
	} {
		if got := Label(json.RawMessage(item), "…"); got != want {
			t.Errorf("%s: got %q, want %q", item, got, want)
		}
	}
	if got := Label(json.RawMessage(`"`+long+`"`), "..."); got != long[:37]+"..." {
		t.Errorf("cut with another mark it is %q", got)
	}
}

// A shelf has the params of items, and counts how they are asked for.
type shelf struct {
	most, asked int
}

func (s *shelf) Tasks(_ context.Context, q store.TaskQuery) (found []plan.Task, err error) {
	s.asked++
	s.most = max(s.most, len(q.IDs))
	for _, id := range q.IDs {
		found = append(found, plan.Task{ID: id, Params: json.RawMessage(fmt.Sprintf(`{"needs": {}, "item": "%v"}`, rules.ItemIndex(id)))})
	}
	return found, nil
}

func TestOnlyTheParamsOfItemsAreReadAndFewAtATime(t *testing.T) {
	of := plan.TaskID{ID: plan.ID{1}}
	tasks := []plan.Task{{ID: of}, {ID: rules.ItemID(of, 0), Of: of, Params: json.RawMessage(`{"item": [1]}`)}, {ID: rules.ItemID(of, 1), Of: of, Params: json.RawMessage(`{}`)}}
	for i := 2; i < 502; i++ {
		tasks = append(tasks, plan.Task{ID: rules.ItemID(of, i), Of: of, Index: i})
	}
	s := &shelf{}
	v, err := Read(t.Context(), s, tasks)
	if err != nil || len(v) != 501 || string(v[rules.ItemID(of, 0)]) != "[1]" || string(v[rules.ItemID(of, 501)]) != `"501"` {
		t.Errorf("%d items, %v", len(v), err)
	}
	if s.asked != 3 || s.most != 200 {
		t.Errorf("asked %d times, for up to %d", s.asked, s.most)
	}
}
