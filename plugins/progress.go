package plugins

import "github.com/seed-1177d267/sluice/plan"

// Progress says how far the attempt is, from 0 to 1, in place of what it said before. People see it while the task runs, within about two
// seconds. It costs next to nothing, however often it is called: the node tells the store once a second, where something is new. The text
// is one line of at most 200 bytes, without the task's secrets. A fraction that is no number is an error, and changes nothing.
func (t *Task) Progress(fraction float64, text string) error {
	p, err := plan.NewProgress(fraction, plan.HideText(text, t.Secrets))
	if err == nil && t.Reached != nil {
		t.Reached(p)
	}
	return err
}
