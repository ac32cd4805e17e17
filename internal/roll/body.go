package roll

import (
	"context"
	"encoding/json"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// An activity is a finished task as a receiver gets it.
type activity struct {
	api.Task
	LogDetails []api.LogEntry `json:"log_details"`
}

const (
	fewAtOnce   = 16      // tasks that are read at once, before anybody knows how large they are
	mostAtOnce  = 250     // the same, if they are small
	bytesAtOnce = 1 << 20 // about how many bytes are read at once
)

// body writes what a receiver gets: these tasks, in order, as many as one batch has. It returns those that
// are in it, and those that come after them.
func (p *pass) body(ctx context.Context, w *work, b *store.Batch, tasks []plan.Task) (body []byte, in, left []plan.Task, err error) {
	head, err := json.Marshal(struct {
		Batch plan.ID        `json:"batch"`
		Group string         `json:"group"`
		Kind  rules.RollKind `json:"kind"`
	}{b.ID, w.group, w.kind})
	if err != nil {
		return nil, nil, nil, err
	}
	body = append(head[:len(head)-1], `,"activities":[`...)
	begin, some := len(body), fewAtOnce
	for left = tasks; len(left) > 0; {
		chunk := left[:min(some, len(left))]
		if b.Tasks == nil {
			chunk = chunk[:min(len(chunk), rules.MostRolled-len(in))]
		}
		if len(chunk) == 0 {
			break
		}
		texts, err := p.read(ctx, b.Queue, chunk)
		if err != nil {
			return nil, nil, nil, err
		}
		bytes := 0
		for i, text := range texts {
			if text == nil { // another program has deleted it
				continue
			}
			if bytes += len(text); b.Tasks == nil && !rules.RollFits(len(in), len(body)-begin, len(text)+1) {
				return append(body, "]}"...), in, left[i:], nil
			}
			if len(in) > 0 {
				body = append(body, ',')
			}
			body, in = append(body, text...), append(in, chunk[i])
		}
		left = left[len(chunk):]
		some = min(max(bytesAtOnce*len(chunk)/max(bytes, 1), 1), mostAtOnce)
	}
	return append(body, "]}"...), in, left, nil
}

// read returns activities as JSON, without secrets; nil for a task that is not there.
func (p *pass) read(ctx context.Context, queue plan.QueueID, tasks []plan.Task) ([][]byte, error) {
	ids, at := make([]plan.TaskID, len(tasks)), make(map[plan.TaskID]int, len(tasks))
	for i := range tasks {
		ids[i], at[tasks[i].ID] = tasks[i].ID, i
	}
	found, err := store.TasksByID(ctx, p.st, store.TaskQuery{Params: true, Output: true}, ids)
	if err != nil {
		return nil, err
	}
	logs, err := p.st.Logs(ctx, ids)
	if err != nil {
		return nil, err
	}
	name, texts := p.queue(queue).Name, make([][]byte, len(tasks))
	for i := range found {
		t := &found[i]
		entries, hidden := logs[t.ID], p.hidden.And(t.Secrets)
		secret.HideLog(nil, entries, nil, hidden.Values(t.Params))
		hidden.HideTask(t)
		a := activity{Task: api.TaskOf(t, name), LogDetails: make([]api.LogEntry, len(entries))}
		for k := range entries {
			a.LogDetails[k] = api.LogEntryOf(&entries[k])
		}
		if texts[at[t.ID]], err = json.Marshal(a); err != nil {
			return nil, err
		}
	}
	return texts, nil
}
