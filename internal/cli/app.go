// Package cli is Sluice's command line: the words that a person or a script types, the answers, and
// the exit codes. It alone reads flags and the environment. Each file holds one group of commands;
// exit.go maps every error to its code.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/client"
	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/hiding"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/disco"
	"github.com/seed-1177d267/sluice/plugins/exec"
	"github.com/seed-1177d267/sluice/plugins/http"
)

// A Program is the command line with what is linked into it and the process that it runs in. All fields but StoreFiles, Requests, Version, Revision, Date and Patience are needed.
type Program struct {
	Open         func(ctx context.Context, uri string) (store.Store, error) // opens the store that a URI names, and makes it if need be
	Existing     func(ctx context.Context, uri string) (store.Store, error) // is Open, but plan.ErrNoStore where it would make one
	Private      func(ctx context.Context) (store.Store, error)             // makes an empty store that ends as it is closed
	DefaultStore func() (uri string, named bool)                            // the URI that holds where none is given; whether SLUICE_STORE says it
	StoreFiles   func(uri string) []string                                  // the files that the store of a URI writes; none if it is a server
	Redact       func(uri string) string                                    // takes the password out of a URI, for printing
	Plugins      *plugins.Registry                                          // what a node that is started here can run
	Commands     *exec.Plugin                                               // runs the programs that are plugins
	Requests     *http.Plugin                                               // is told what --allow-net says; nil: nothing is
	Disco        *disco.Plugin                                              // runs workers of Disco
	Version      string                                                     // default: what the build says
	Revision     string                                                     // the commit; default: the same
	Date         string                                                     // of the commit, as RFC 3339 has it; default: the same
	Patience     time.Duration                                              // how long the completion of a word waits for a store; default 1 s

	Stdin          io.Reader
	Stdout, Stderr io.Writer // terminals if they are an *os.File that is one
	Getenv         func(string) string
}

// An app is one run of the program: its flags, and the store once it is open.
type app struct {
	Program
	words       []string // the arguments of the program
	storeFlag   string
	configFlag  string // the file that names the store, of commands that have no --config of their own
	storeOfFile string // the URI that a configuration file names, which holds where --store is not given; "": none is read
	server      serverChoice
	pluginDirs  []string       // of a command that runs a plan
	networks    []netip.Prefix // of the same
	disco       discoPlace     // where the tasks of Disco's workers run
	opened      store.Store    // that the command works on; nil: none is open
	colorFlag   choice
	quiet       bool       // print no notes
	written     []usedFile // see checkWritten,
	spared      []usedFile // and spareLater
	quit        quitting
}

// storeURI returns the URI of the store: by --store, else by a file of --config, once that is read, else by the environment.
func (a *app) storeURI() string {
	if a.storeFlag != "" {
		return a.storeFlag
	}
	if a.storeOfFile != "" {
		return a.storeOfFile
	}
	uri, _ := a.DefaultStore()
	return uri
}

// storeAnywhere is storeURI for a command that is typed in another folder.
func (a *app) storeAnywhere() string {
	uri := a.storeURI()
	if path, ok := strings.CutPrefix(uri, "sqlite:"); ok && !filepath.IsAbs(path) {
		if abs, err := filepath.Abs(path); err == nil {
			return "sqlite:" + abs
		}
	}
	return uri
}

// withStore runs do with the store that the flags and the environment name, for commands that look at what is there, or change it. They
// make none: a mistyped path would be taken for a store in which nothing ever ran. The user's own is as good as empty until it is made.
func (a *app) withStore(ctx context.Context, do func(store.Store) error) error {
	if url, err := a.serverURL(); err != nil || url != "" {
		return a.usingServer(ctx, url, err, do)
	}
	if err := a.readConfigFlag(); err != nil {
		return err
	}
	st, err := a.Existing(ctx, a.storeURI())
	if errors.Is(err, plan.ErrNoStore) {
		_, named := a.DefaultStore()
		switch {
		case a.storeFlag != "":
			return fmt.Errorf("%w; check --store", err)
		case named:
			return fmt.Errorf("%w; check SLUICE_STORE", err)
		}
		st, err = a.Private(ctx)
	}
	return a.using(ctx, st, err, do)
}

// makingStore is withStore for commands that put something in: they make the store if it is not there yet.
func (a *app) makingStore(ctx context.Context, do func(store.Store) error) error {
	if url, err := a.serverURL(); err != nil || url != "" {
		return a.usingServer(ctx, url, err, do)
	}
	if err := a.readConfigFlag(); err != nil {
		return err
	}
	st, err := a.Open(ctx, a.storeURI())
	if errors.Is(err, plan.ErrUnavailable) && !a.storeNamed() {
		err = fmt.Errorf("%w; to use another store give --store, or set SLUICE_STORE", err)
	}
	return a.using(ctx, st, err, do)
}

// using runs do with a store that was opened, and closes it.
func (a *app) using(ctx context.Context, st store.Store, err error, do func(store.Store) error) (failed error) {
	if err != nil {
		if exitCode(err) == exitFailed {
			err = asUsage(err) // the store is neither away nor full: its URI is wrong
		}
		return err
	}
	defer func() { failed = errors.Join(failed, st.Close()) }()
	a.opened = st
	if _, far := st.(*client.Client); !far { // a server hides secrets itself
		a.noteOtherStore(ctx, st)
		return do(hiding.New(st))
	}
	return do(st)
}

// unhidden returns the store with its secrets, and the plan as that has it: for who compares them with a file, and prints none. A server tells
// nobody.
func unhidden(ctx context.Context, st store.Store, p *plan.Plan) (store.Store, *plan.Plan, error) {
	whole := hiding.Of(st)
	if whole == st {
		return st, p, nil
	}
	there, err := whole.Plan(ctx, p.ID)
	return whole, &there, err
}

// storeNamed reports whether somebody named the store.
func (a *app) storeNamed() bool {
	_, named := a.DefaultStore()
	return named || a.storeFlag != "" || a.storeOfFile != ""
}

// noteOtherStore notes that this runs inside a task, and that the task is not in the default store,
// which is used because none was named. Commands do not get the SLUICE_STORE of their node, because
// it may hold a password.
func (a *app) noteOtherStore(ctx context.Context, r store.Reader) {
	if a.storeNamed() {
		return
	}
	id, err := plan.ParseID(a.Getenv("SLUICE_TASK"))
	if err != nil || id.IsZero() {
		return
	}
	if found, err := r.Tasks(ctx, store.TaskQuery{IDs: []plan.TaskID{{ID: id}}, Limit: 1}); err == nil && len(found) == 0 {
		a.note("the task that this runs in is not in %s: tasks do not get their node's SLUICE_STORE; to name its store give --store, or set SLUICE_STORE in the command",
			a.Redact(a.storeURI()))
	}
}

// tell prints an error. Each mistake in a plan file begins with its place, as a compiler's does, so
// that editors find it.
func (a *app) tell(err error) {
	if placed, ok := errors.AsType[planfile.Errors](err); ok && strings.HasPrefix(err.Error(), placed.Error()) {
		fmt.Fprintln(a.Stderr, strings.TrimRight(err.Error(), "\n"))
		return
	}
	if err.Error() == context.Canceled.Error() { // by the first signal, before there is anything to tell
		err = errInterrupted
	}
	fmt.Fprintf(a.Stderr, "%s %s\n", a.paint(a.Stderr).Bad("sluice:"), cells.Tame(strings.TrimRight(err.Error(), "\n")))
}

// note prints a note for people on standard error, unless they asked for quiet. Other people may have
// written the names in it.
func (a *app) note(format string, args ...any) {
	if a.quiet {
		return
	}
	fmt.Fprintf(a.Stderr, "%s %s\n", a.paint(a.Stderr).Dim("note:"), cells.Tame(fmt.Sprintf(format, args...)))
}

// command returns a command as the person would type it now, on the same store, without a password:
// hints end in the logs of CI.
func (a *app) command(words ...string) string {
	if words = a.asked(words); a.storeFlag != "" {
		words = append(words, "--store", a.Redact(a.storeFlag))
	} else if a.configFlag != "" {
		words = append(words, "--config", a.configFlag)
	}
	if len(words) > 1 && words[0] == "plan" && (words[1] == "run" || slices.Contains(words, "--run")) {
		for _, dir := range a.pluginDirs {
			words = append(words, "--plugin-dir", dir)
		}
		for _, n := range a.networks {
			words = append(words, "--allow-net", n.String())
		}
	}
	return hint.Line(words)
}

// noteMore says below a listing that there is more than its limit, unless the person set that.
func (a *app) noteMore(cmd *cobra.Command, more bool, things string) error {
	if more && !cmd.Flags().Changed("limit") {
		a.note("there are more %s; --limit 0 lists all", things)
	}
	return nil
}

// say prints what was done.
func (a *app) say(format string, args ...any) error {
	_, err := fmt.Fprintf(a.Stdout, format+"\n", args...)
	return err
}
