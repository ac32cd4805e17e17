package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/folders"
	"github.com/seed-1177d267/sluice/internal/source"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Flags whose value is a file. A command writes those of writtenFlags, and reads those of readFlags.
var (
	writtenFlags = []string{"junit", "log-file", "audit"}
	readFlags    = []string{"config", "with", "access", "token-file", "tls-cert", "tls-key", "root-password-file", "plugin-permissions", "jobfile", "plan"}
)

// summaryVariable names the file of the step's summary of GitHub Actions.
const summaryVariable = "GITHUB_STEP_SUMMARY"

// summaryFile returns the file of the step's summary, if this runs under GitHub Actions.
func (a *app) summaryFile() string {
	if a.Getenv("GITHUB_ACTIONS") != "true" {
		return ""
	}
	return a.Getenv(summaryVariable)
}

// A usedFile is a file that a command reads or writes.
type usedFile struct {
	what string      // as an error names it
	path string      // with all links in it resolved
	info fs.FileInfo // nil: it is not there yet
}

func newUsedFile(what, path string) usedFile {
	info, _ := os.Stat(path) // a file that is not there is told by its path
	if dir, err := os.Getwd(); err == nil && !filepath.IsAbs(path) {
		path = dir + string(filepath.Separator) + path // not Join, which takes a link and .. behind it away
	}
	return usedFile{what, folders.Resolve(path), info}
}

// is reports whether both are one file, by whatever names.
func (f *usedFile) is(other *usedFile) bool {
	if f.info != nil && other.info != nil {
		return os.SameFile(f.info, other.info)
	}
	return f.info == nil && other.info == nil && f.path == other.path
}

// stream reports whether what is written replaces nothing: the file is a pipe, a device or a terminal.
func (f *usedFile) stream() bool { return f.info != nil && !f.info.Mode().IsRegular() }

// checkFlags checks flags of all commands.
func (a *app) checkFlags(cmd *cobra.Command, args []string) error {
	if err := checkEmpty(cmd.Flags(), a.words); err != nil {
		return err
	}
	return a.checkWritten(cmd, args)
}

// checkWritten refuses a command that would write a file over another file that it reads or writes:
// the store with SQLite's files beside it, the plan file, and the files of its flags. It keeps what
// the command writes for spare.
func (a *app) checkWritten(cmd *cobra.Command, args []string) error {
	var reads []usedFile
	for _, name := range readFlags {
		if f := cmd.Flags().Lookup(name); f != nil && f.Value.String() != "" {
			reads = append(reads, newUsedFile("the file of --"+name, f.Value.String()))
		}
	}
	if strings.Contains(cmd.Use, "FILE") {
		for _, arg := range args {
			if in, ok := a.Stdin.(*os.File); ok && arg == "-" {
				info, _ := in.Stat()
				reads = append(reads, usedFile{"the file on standard input", "", info})
			} else if arg != "-" {
				reads = append(reads, newUsedFile("the file "+arg, arg))
			}
		}
	}
	for _, name := range writtenFlags {
		if f := cmd.Flags().Lookup(name); f != nil && f.Value.String() != "" && f.Value.String() != "-" {
			a.written = append(a.written, newUsedFile("--"+name+" "+f.Value.String(), f.Value.String()))
		}
	}
	if path := a.summaryFile(); path != "" && cmd.Flags().Lookup("junit") != nil {
		a.written = append(a.written, newUsedFile(summaryVariable+" "+path, path))
	}
	a.written = slices.DeleteFunc(a.written, func(f usedFile) bool { return f.stream() })
	for i := range a.written { // logs and summaries are written behind what is there
		for _, w := range []io.Writer{a.Stdout, a.Stderr} {
			if info := view.FileInfo(w); info != nil && strings.HasPrefix(a.written[i].what, "--junit") {
				if err := over(a.written[i:i+1], &usedFile{"what the command prints", "", info}); err != nil {
					return err
				}
			}
		}
	}
	dirs, _ := cmd.Flags().GetStringArray("plugin-dir") // no command without the flag has any
	for _, dir := range dirs {
		for i := range a.written {
			if filepath.Dir(a.written[i].path) == newUsedFile("", dir).path {
				return usagef("%s would be a plugin of --plugin-dir %s; name another file", a.written[i].what, dir)
			}
		}
	}
	var kept []usedFile
	if fills := cmd.Flags().Lookup("param") != nil; fills || len(a.written) > 0 {
		kept = a.storeFiles()
		for i := range reads {
			if err := over(kept, &reads[i]); fills && err != nil {
				return err
			}
		}
	}
	a.spared = slices.Concat(kept, reads)
	for i := range a.written {
		others := slices.Concat(a.spared, a.written[:i])
		for k := range others {
			if err := over(a.written[i:i+1], &others[k]); err != nil {
				return err
			}
		}
	}
	return nil
}

// storeFiles returns the files of the store, if it is one of files.
func (a *app) storeFiles() (files []usedFile) {
	if url, err := a.serverURL(); err != nil || url != "" || a.StoreFiles == nil {
		return nil
	}
	uri := a.storeURI()
	for _, path := range a.StoreFiles(uri) {
		files = append(files, newUsedFile("the store "+a.Redact(uri), path))
	}
	return files
}

// spare refuses to write any of the command's files over the file of a plan, or over one that its tasks
// or the defaults of queues read.
func (a *app) spare(ctx context.Context, st store.Reader, p *plan.Plan) error {
	if len(a.written) == 0 {
		return nil
	}
	if p.Source != "" {
		f := newUsedFile("the plan's file "+p.Source, p.Source)
		a.spared = append(a.spared, f)
		if err := over(a.written, &f); err != nil {
			return err
		}
	}
	if err := a.spareDefaults(ctx, st); err != nil {
		return err
	}
	tasks, err := store.AllTasks(ctx, st, store.TaskQuery{Plan: p.ID, NoItems: true, Params: true})
	return cmp.Or(err, a.spareInputs(tasks))
}

// spareDefaults refuses to write any of the command's files over one that the defaults of a queue read.
func (a *app) spareDefaults(ctx context.Context, st store.Reader) error {
	if len(a.written) == 0 {
		return nil
	}
	queues, err := st.Queues(ctx)
	if err != nil {
		return err
	}
	for i := range queues {
		q := &queues[i]
		var in struct{ Dir string }
		_ = json.Unmarshal(q.Defaults.Params, &in) // what is no object has no files
		for _, path := range filesIn(q.Defaults.Params) {
			if err := a.spareFile(in.Dir, path, fmt.Sprintf("which queue %q has its tasks read", q.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *app) spareFile(dir, path, who string) error {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	f := newUsedFile(fmt.Sprintf("the file %s, %s", path, who), path)
	a.spared = append(a.spared, f)
	return over(a.written, &f)
}

// spareLater refuses to write a file that was opened, or looked at, before: somebody may have put another
// file, or a link, in its place since.
func (a *app) spareLater(path string) error {
	now := []usedFile{newUsedFile(path, path)}
	for _, f := range a.spared {
		if f.path != "" { // it may have been made since
			f = newUsedFile(f.what, f.path)
		}
		if err := over(now, &f); err != nil {
			return err
		}
	}
	return nil
}

// spareInputs refuses to write any of the command's files over a file that tasks read: the lines of a
// foreach, or a value by from_file. The tasks are compiled, so that paths have the values of params.
func (a *app) spareInputs(tasks []plan.Task) error {
	if len(a.written) == 0 {
		return nil
	}
	for i := range tasks {
		t := &tasks[i]
		var in struct{ Dir string }
		_ = json.Unmarshal(t.Params, &in) // other plugins have absolute paths
		paths := filesIn(t.Params)
		if t.Foreach != nil && t.Foreach.Lines != "" {
			paths = append(paths, t.Foreach.Lines)
		}
		for _, path := range paths {
			if err := a.spareFile(in.Dir, path, fmt.Sprintf("which task %q reads", t.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// filesIn returns the paths of the values in params that are read from files.
func filesIn(value json.RawMessage) (paths []string) {
	var inner []json.RawMessage
	var object map[string]json.RawMessage
	switch {
	case len(value) > 0 && value[0] == '[':
		_ = json.Unmarshal(value, &inner) // params are JSON, as of the next
	case len(value) > 0 && value[0] == '{':
		if v, _ := source.Parse(value); v.FromFile != "" {
			return []string{v.FromFile}
		}
		_ = json.Unmarshal(value, &object)
		inner = slices.Collect(maps.Values(object))
	}
	for _, v := range inner {
		paths = append(paths, filesIn(v)...)
	}
	return paths
}

// spareConfig refuses to log into the configuration file that names the logs.
func spareConfig(file string, logs []string) error {
	config := newUsedFile("the file of --config", file)
	for _, path := range logs {
		if err := over([]usedFile{newUsedFile("the log "+path, path)}, &config); err != nil {
			return err
		}
	}
	return nil
}

// over refuses to write one of the files over another one.
func over(written []usedFile, f *usedFile) error {
	for i := range written {
		if written[i].is(f) {
			return usagef("%s would be written over %s; name another file", written[i].what, f.what)
		}
	}
	return nil
}
