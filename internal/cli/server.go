package cli

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-1177d267/sluice/internal/client"
	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/textfile"
)

// The environment variables that name a server, and say who asks it.
const (
	serverVariable = "SLUICE_SERVER"
	tokenVariable  = "SLUICE_TOKEN"
)

// serverPoll is how often at most a server is asked for something that it cannot be waited with.
const serverPoll = time.Second

// patientFor is how long a command that waits for something waits for a server that is away: a restart takes less.
const patientFor = time.Minute

// A serverChoice says which server is asked instead of a store, and as whom.
type serverChoice struct {
	flag, tokenFile string
	direct          bool // the command needs the store itself
}

func (s *serverChoice) add(flags *pflag.FlagSet) {
	flags.StringVar(&s.flag, "server", "", "the `URL` of a server (\"sluice serve\") that is asked instead of a store: http://HOST:PORT, https://HOST or unix:PATH (default: $"+serverVariable+", unless a store is named)")
	flags.StringVar(&s.tokenFile, "token-file", "", "the `FILE` with the token that says who asks the server (default: what $"+tokenVariable+" holds)")
}

// serverURL returns the server that is asked; "" if a store is opened.
func (a *app) serverURL() (string, error) {
	s := &a.server
	named := a.storeFlag != "" || a.configFlag != ""
	switch {
	case s.flag != "" && a.storeFlag != "":
		return "", usagef("--server and --store: plans are looked for in one place; give one of them")
	case s.flag != "" && a.configFlag != "":
		return "", usagef("--server and --config: plans are looked for in one place; give one of them")
	case s.direct || s.flag == "" && named:
	case s.flag != "":
		return s.flag, nil
	default:
		if url := a.Getenv(serverVariable); url != "" {
			return url, nil
		}
	}
	if s.tokenFile != "" && !s.direct {
		return "", usagef("--token-file is for a server: name it by --server, or %s", serverVariable)
	}
	return "", nil
}

// usingServer runs do with the server at the URL; err is that there is none to be asked.
func (a *app) usingServer(ctx context.Context, url string, err error, do func(store.Store) error) error {
	if err != nil {
		return err
	}
	st, err := a.connect(url)
	return a.using(ctx, st, err, do)
}

func (a *app) connect(url string) (store.Store, error) {
	token := a.Getenv(tokenVariable)
	if file := a.server.tokenFile; file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, usagef("--token-file: %w", err)
		}
		if token = string(bytes.TrimSpace(textfile.WithoutMark(text))); token == "" {
			return nil, usagef("--token-file: there is nothing in %s", file)
		}
		if info, err := os.Stat(file); err == nil && runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
			a.note("%s can be read by others, who can then do what you may: chmod 600 %s", file, file)
		}
	}
	c, err := client.New(client.Config{URL: url, Token: token, Version: a.version().Version})
	if err != nil {
		return nil, asUsage(err)
	}
	return c, nil
}

// patient returns a context that waits for a server that is away, for the time of a restart, and
// tells the person once. A store waits as it does. clear removes a drawing from the terminal before
// the note; it may be nil.
func (a *app) patient(ctx context.Context, clear func()) context.Context {
	told := false
	return client.Patient(ctx, patientFor, func(err error) {
		if told {
			return
		}
		told = true
		if clear != nil {
			clear()
		}
		a.note("%v; trying again for %s", err, duration.Text(patientFor))
	})
}

// needsStore is called first by a command that needs the store itself, because of its work. If a
// store is named too, it ignores a server in the environment. Otherwise it refuses, so that nobody
// takes a local store for the server's.
func (a *app) needsStore(cmd *cobra.Command, because, instead string) error {
	said := "--server"
	if a.server.flag == "" {
		if said = serverVariable; a.Getenv(serverVariable) == "" {
			return nil
		}
		file := cmd.Flag("config")
		if _, named := a.DefaultStore(); named || a.storeFlag != "" || file != nil && file.Changed {
			a.server.direct = true
			return nil
		}
	}
	words := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	return usagef("%s: %s %s, and needs the store itself: name it by --store%s", said, words, because, instead)
}

// served reports whether a server is all that the person has named, so that what needs the store cannot be typed here.
func (a *app) served() bool {
	if a.server.flag != "" {
		return true
	}
	_, named := a.DefaultStore()
	return a.Getenv(serverVariable) != "" && !named && a.storeFlag == "" && a.configFlag == ""
}

// asked adds to a command what names the server, unless the command needs the store. To retry a plan there leaves it to nodes to run it.
func (a *app) asked(words []string) []string {
	if len(words) > 1 && words[0] == "plan" && words[1] == "retry" && a.served() {
		words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "--run" })
	}
	if a.server.flag == "" || hint.NeedsStore(words) {
		return words
	}
	words = append(words, "--server", client.Redact(a.server.flag))
	if a.server.tokenFile != "" {
		words = append(words, "--token-file", a.server.tokenFile)
	}
	return words
}

// pollOf is the interval for polling a store; a server is polled less often.
func pollOf(st store.Reader, every time.Duration) time.Duration {
	if _, far := st.(store.Waiter); far {
		return max(every, serverPoll)
	}
	return every
}
