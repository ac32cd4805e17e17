package den

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/listing"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// items returns the items of a foreach task over files, or how it fails.
func (a *attempt) items(ctx context.Context, f *plan.Foreach) ([]json.RawMessage, plan.Result) {
	dir, err := a.folder(ctx, f)
	var items []json.RawMessage
	if err == nil {
		items, err = plugins.Within(ctx, func() ([]json.RawMessage, error) { return listing.Read(ctx, f, dir) })
	}
	if err == nil {
		err = rules.CheckKeys(f, items)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		err = plugins.NotBegun(err) // another node may have the files
	}
	if err != nil {
		return nil, noInput(fmt.Errorf("foreach: %w", err))
	}
	r := plan.Result{Status: plan.Succeeded}
	if len(items) == 0 {
		r.Detail = rules.NoItemsDetail(f, dir)
		a.out.Append(plan.System, r.Detail)
	}
	return items, r
}

// folder returns the task's dir, where relative paths of its foreach start. Without a dir, or with
// a plugin whose dir means something else, they start in the node's folder.
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
		params, err = compiler.Resolve(&a.task, params, a.planState(ctx))
	}
	_ = json.Unmarshal(params, &own)
	return own.Dir, err
}
