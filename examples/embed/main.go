// Embed runs a plan inside a Go program. The plan lists the files of a folder, hashes each in a
// task of its own, and makes a manifest of all of them. Stop it half-way and start it again: it
// continues.
//
//	go run ./examples/embed FOLDER
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/seed-1177d267/sluice"
	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: embed FOLDER")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, folder string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	st, err := sluice.Open(ctx, "") // the store that the command line uses
	if err != nil {
		return err
	}
	defer st.Close()
	reg := plugins.NewRegistry()
	reg.Register("list", plugins.Func(list))
	reg.Register("hash", plugins.Func(hash))
	reg.Register("manifest", plugins.Func(manifest))

	p, err := unfinishedOrNew(ctx, st, folder)
	if err != nil {
		return err
	}
	// This process runs the plan to its end. Ctrl-C ends ctx: what is left is for the next start.
	if err := den.Run(ctx, st, den.Config{Threads: 8, Plugins: reg, Plan: p.ID}); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	if p, err = st.Plan(ctx, p.ID); err != nil {
		return err
	}
	if p.State != plan.PlanSucceeded {
		for t, err := range st.Tasks(ctx, sluice.TaskQuery{Plan: p.ID, Statuses: []plan.Status{plan.Failed}}) {
			if err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "%s: %s\n", t.Name, t.Detail)
		}
		return fmt.Errorf("plan %s is %v", p.Title(), p.State)
	}
	out, err := st.Output(ctx, p.ID, "manifest")
	fmt.Printf("%s\n", out)
	return err
}

// unfinishedOrNew returns a plan that an earlier run of this program left unfinished, or submits one.
func unfinishedOrNew(ctx context.Context, st *sluice.Store, folder string) (plan.Plan, error) {
	for p, err := range st.Plans(ctx, sluice.PlanQuery{Name: "hash-files", State: new(plan.PlanRunning)}) {
		return p, err
	}
	s := plan.New("hash-files")
	s.Add(plan.TaskSpec{Name: "list", Plugin: "list", Params: map[string]any{"folder": folder}})
	s.Add(plan.TaskSpec{
		Name: "hash", Plugin: "hash", Needs: []string{"list"},
		Foreach: &plan.Foreach{Value: "needs.list"}, // a task for each file that list returns
		Params:  map[string]any{"file": "${{ item }}"},
		Retry:   plan.Retry{Attempts: 3},
	})
	s.Add(plan.TaskSpec{Name: "manifest", Plugin: "manifest", Needs: []string{"hash"}})
	return st.Submit(ctx, s)
}

// list returns the regular files below a folder.
func list(ctx context.Context, t *plugins.Task) (any, error) {
	var params struct{ Folder string }
	if err := json.Unmarshal(t.Params, &params); err != nil {
		return nil, err
	}
	files := []string{}
	err := filepath.WalkDir(params.Folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	t.Log.Printf("%d files below %s", len(files), params.Folder)
	return files, err
}

type hashed struct {
	File   string
	Bytes  int64
	SHA256 string
}

// hash returns the SHA-256 sum of one file.
func hash(ctx context.Context, t *plugins.Task) (any, error) {
	var params struct{ File string }
	if err := json.Unmarshal(t.Params, &params); err != nil {
		return nil, err
	}
	f, err := os.Open(params.File)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return hashed{params.File, n, hex.EncodeToString(h.Sum(nil))}, err
}

// manifest sums up what the tasks of "hash" returned: one list, in the order of the files.
func manifest(ctx context.Context, t *plugins.Task) (any, error) {
	var params struct {
		Needs struct{ Hash []hashed }
	}
	if err := json.Unmarshal(t.Params, &params); err != nil {
		return nil, err
	}
	all, bytes := sha256.New(), int64(0)
	for _, f := range params.Needs.Hash {
		fmt.Fprintf(all, "%s  %s\n", f.SHA256, f.File)
		bytes += f.Bytes
	}
	return map[string]any{"files": len(params.Needs.Hash), "bytes": bytes, "manifest": hex.EncodeToString(all.Sum(nil))}, nil
}
