package plugins

import (
	"github.com/seed-1177d267/sluice/internal/rules"

	"github.com/seed-1177d267/sluice/internal/secret"
)

// Progress reports how far the attempt is, from 0 to 1, and replaces the report before. People see
// it while the task runs, within about two seconds. A call costs next to nothing: the node tells
// the store once a second, and only of changes. The text is one line of at most 200 bytes, without
// the task's secrets. A fraction that is NaN is an error, and changes nothing.
func (t *Task) Progress(fraction float64, text string) error {
	p, err := rules.NewProgress(fraction, secret.HideText(text, t.Secrets))
	if err == nil && t.Reached != nil {
		t.Reached(p)
	}
	return err
}
