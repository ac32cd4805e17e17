package den

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-1177d267/sluice/plan"
)

// maxLine bounds a line of a file that a foreach goes over.
const maxLine = 1 << 20

// expand ends the claim of a foreach task over files with its items. Relative paths are of the task's dir.
func (a *attempt) expand(f *plan.Foreach) plan.Ending {
	e := plan.Ending{Claim: a.task.Claim}
	items, err := itemsOf(f, a.task.Params)
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

func itemsOf(f *plan.Foreach, params json.RawMessage) ([]json.RawMessage, error) {
	var own struct {
		Dir string `json:"dir"`
	}
	_ = json.Unmarshal(params, &own) // of a plugin that has another dir, or none, paths are the node's
	under := func(path string) string {
		if own.Dir != "" && !filepath.IsAbs(path) {
			return filepath.Join(own.Dir, path)
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
		if own.Dir != "" && !filepath.IsAbs(f.Glob) {
			for i := range texts {
				if rel, err := filepath.Rel(own.Dir, texts[i]); err == nil {
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
