package sqlite

import (
	"encoding/json"
	"fmt"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// attempt names a claim: a task's number, and what its row holds of the token.
type attempt struct {
	N     int64 `json:"n"`
	Token int64 `json:"t"`
}

// said is a protocol.Reached as it is kept.
type said struct {
	attempt
	Fraction float64 `json:"f"`
	Text     string  `json:"s,omitempty"`
}

// keepProgress keeps what an instance says of its tasks, in place of what it said.
func (t *tx) keepProgress(instance int64, reached []protocol.Reached) {
	if len(reached) == 0 {
		t.exec("DELETE FROM progress WHERE instance = ?", instance)
		return
	}
	all := make([]said, len(reached))
	for i := range reached {
		r := &reached[i]
		n, token := unpackToken(r.Token)
		all[i] = said{attempt{n, token}, r.Fraction, r.Text}
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.fail(fmt.Errorf("progress: %w", err))
		return
	}
	t.exec("INSERT OR REPLACE INTO progress (instance, said) VALUES (?, ?)", instance, string(text))
}

// progress returns what instances say of their tasks.
func (c *conn) progress() (map[attempt]*plan.Progress, error) {
	found := map[attempt]*plan.Progress{}
	for r := c.query("SELECT said FROM progress"); r.next(); {
		var all []said
		if err := json.Unmarshal([]byte(r.text(0)), &all); err != nil {
			r.close()
			return nil, fmt.Errorf("progress: %w", err)
		}
		for _, s := range all {
			found[s.attempt] = &plan.Progress{Fraction: s.Fraction, Text: s.Text}
		}
	}
	return found, nil
}

// fillProgress gives running tasks what the attempts said that they are claimed for.
func (c *conn) fillProgress(found []foundTask, progress map[attempt]*plan.Progress) {
	at := map[int64]*foundTask{}
	var ns []int64
	for i := range found {
		if f := &found[i]; rules.Reports(f.Status) {
			at[f.n], ns = f, append(ns, f.n)
		}
	}
	if len(progress) == 0 || len(ns) == 0 {
		return
	}
	for r := c.query("SELECT n, token FROM tasks WHERE n IN (SELECT value FROM json_each(?)) AND "+isReporting, list(ns)); r.next(); {
		at[r.int(0)].Progress = progress[attempt{r.int(0), r.int(1)}]
	}
}

// numbersOf returns the numbers of the tasks, as a list of JSON.
func numbersOf(progress map[attempt]*plan.Progress) string {
	ns := make([]int64, 0, len(progress))
	for a := range progress {
		ns = append(ns, a.N)
	}
	return list(ns)
}
