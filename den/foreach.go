package den

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-1177d267/sluice/plan"
)

// maxLine bounds a line of a file that a foreach goes over.
const maxLine = 1 << 20

// expand ends the claim of a foreach task over files with its items.
func (a *attempt) expand(ctx context.Context, f *plan.Foreach) plan.Ending {
	e := plan.Ending{Claim: a.task.Claim}
	dir, err := a.folder(ctx, f)
	var items []json.RawMessage
	if err == nil {
		items, err = itemsOf(f, dir)
	}
	if err != nil {
		e.Status, e.Reason, e.Detail = plan.Failed, plan.ReasonInput, "foreach: "+err.Error()
		return e
	}
	if len(items) == 0 {
		a.out.Append(plan.System, fmt.Sprintf("no items: nothing matches %s%s", f.Glob, f.Lines))
	}
	e.Status, e.Expand, e.Items = plan.Held, true, items
	return e
}

// folder returns the task's dir, which relative paths of its foreach are of. Of a plugin that has another dir, or none, they are the
// node's.
func (a *attempt) folder(ctx context.Context, f *plan.Foreach) (string, error) {
	if filepath.IsAbs(f.Lines + f.Glob) {
		return "", nil
	}
	var own struct {
		Dir   string          `json:"dir"`
		Needs json.RawMessage `json:"needs,omitempty"`
	}
	_ = json.Unmarshal(a.task.Params, &own)
	if !a.task.Template || !strings.Contains(own.Dir, "${{") {
		return own.Dir, nil
	}
	params, _, err := a.delivered(ctx)
	if err != nil {
		return "", err
	}
	_ = json.Unmarshal(params, &own)
	if params, err = json.Marshal(own); err == nil { // without the params that are over an item, which there is none of yet
		params, err = a.task.Resolve(params)
	}
	_ = json.Unmarshal(params, &own)
	return own.Dir, err
}

func itemsOf(f *plan.Foreach, dir string) ([]json.RawMessage, error) {
	under := func(path string) string {
		if dir != "" && !filepath.IsAbs(path) {
			return filepath.Join(dir, path)
		}
		return path
	}
	var texts []string
	var err error
	if f.Lines != "" {
		texts, err = linesOf(under(f.Lines))
	} else {
		texts, err = filepath.Glob(under(f.Glob)) // sorted
		if err != nil {
			err = fmt.Errorf("glob %q: %w", f.Glob, err)
		}
		if dir != "" && !filepath.IsAbs(f.Glob) {
			for i := range texts {
				if rel, err := filepath.Rel(dir, texts[i]); err == nil {
					texts[i] = rel // the command runs in dir
				}
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if len(texts) > plan.MaxItems {
		return nil, fmt.Errorf("%d items; at most %d are made: let an item stand for several", len(texts), plan.MaxItems)
	}
	items := make([]json.RawMessage, len(texts))
	for i, text := range texts {
		if items[i], err = json.Marshal(text); err != nil {
			return nil, err
		}
	}
	return items, nil
}

func linesOf(path string) ([]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var lines []string
	s := bufio.NewScanner(file)
	s.Buffer(nil, maxLine)
	for s.Scan() {
		if line := strings.TrimSuffix(s.Text(), "\r"); line != "" {
			lines = append(lines, line)
		}
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("lines of %s: %w", path, err)
	}
	return lines, nil
}
