package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/folders"
	"github.com/seed-1177d267/sluice/internal/jobpack"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins/disco"
)

// A discoPlace is where the tasks of Disco's workers run, and how others fetch their outputs.
type discoPlace struct {
	dir    string // "" is a folder for each store, in the folder for state
	host   string // "" is the host's name
	listen string // "" is the default
}

// defaultDiscoListen is where a node serves the outputs of workers.
var defaultDiscoListen = net.JoinHostPort("127.0.0.1", strconv.Itoa(disco.DefaultPort))

func (p *discoPlace) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.dir, "disco-data", "", "the `FOLDER` of Disco's workers and their outputs, which are then served by HTTP "+
		"(default: one for each store, in the folder for state, and not served)")
	f.StringVar(&p.host, "disco-host", "", "the `NAME` of this host in disco:// URLs (default: the host's name)")
	f.StringVar(&p.listen, "disco-listen", defaultDiscoListen, "serve the outputs of Disco's workers on this `ADDRESS`")
}

// args are the flags that a node gives to its runners.
func (p *discoPlace) args() (args []string) {
	if p.dir != "" {
		args = append(args, "--disco-data", p.dir)
	}
	if p.host != "" {
		args = append(args, "--disco-host", p.host)
	}
	if p.listen != defaultDiscoListen {
		args = append(args, "--disco-listen", p.listen)
	}
	return args
}

// open returns a function that opens the place for tasks of the store of a.
func (p *discoPlace) open(a *app) func() (disco.Place, error) {
	return func() (disco.Place, error) {
		data, err := p.data(a, true)
		if err != nil {
			return disco.Place{}, err
		}
		port := disco.DefaultPort
		if _, text, err := net.SplitHostPort(p.listen); err == nil {
			if n, err := strconv.Atoi(text); err == nil && n > 0 {
				port = n
			}
		}
		return disco.Place{Data: data, Port: port, Pack: a.openStoredPack}, nil
	}
}

// openStoredPack opens the job pack that the store of the command keeps beside a plan.
func (a *app) openStoredPack(ctx context.Context, id plan.PlanID) (io.ReadCloser, error) {
	packs, ok := a.opened.(store.Packs)
	if !ok {
		return nil, fmt.Errorf("job pack of plan %s: this store keeps none: %w", id, plan.ErrNotFound)
	}
	pack, _, err := packs.OpenPack(ctx, id)
	return pack, err
}

// data opens the folder. Unless it is to be made, and if nothing made it before, data returns nil.
func (p *discoPlace) data(a *app, make bool) (*disco.Data, error) {
	identity := a.Redact(a.storeAnywhere())
	dir := p.dir
	if dir == "" {
		state := folders.State()
		if state == "" {
			return nil, errors.New("there is no home folder for the files of workers; give --disco-data, or set XDG_STATE_HOME")
		}
		sum := sha256.Sum256([]byte(identity))
		dir = filepath.Join(state, "sluice", "disco", hex.EncodeToString(sum[:8]))
	}
	if _, err := os.Stat(dir); err != nil && !make {
		return nil, nil
	}
	name := p.host
	if name == "" {
		var err error
		if name, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("the host has no name: %w; give --disco-host", err)
		}
	}
	return disco.OpenData(dir, name, identity)
}

// serveDisco serves the outputs of workers, if --disco-data says so. The caller calls stop.
func (a *app) serveDisco(ctx context.Context, log *slog.Logger) (stop func(), err error) {
	p := &a.disco
	switch {
	case p.listen == "":
		return nil, usagef("--disco-listen: give an address, as in %s", defaultDiscoListen)
	case p.dir == "" && p.listen != defaultDiscoListen:
		return nil, usagef("--disco-listen serves the folder of --disco-data: give that too")
	case p.dir == "":
		return func() {}, nil
	}
	data, err := p.data(a, true)
	if err != nil {
		return nil, usagef("--disco-data: %w", err)
	}
	listener, err := net.Listen("tcp", p.listen)
	if err != nil {
		why := "give an address of this machine, HOST:PORT"
		if errors.Is(err, syscall.EADDRINUSE) {
			why = "another node of this machine may serve the folder already: give each node its own port"
		}
		return nil, usagef("--disco-listen %s: %w; %s", p.listen, err, why)
	}
	p.listen = listener.Addr().String() // with the port, if any was to be taken
	who := "all accounts of this machine"
	if at, err := netip.ParseAddrPort(p.listen); err != nil || !at.Addr().IsLoopback() {
		who = "everyone who can reach this address"
	}
	log.Info("the outputs of Disco's workers are served", "address", "http://"+p.listen+"/disco/"+data.Host+"/", "folder", data.Dir, "readers", who)
	server := &http.Server{Handler: data.Handler(), ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("serve the outputs of Disco's workers", "error", err)
		}
	})
	return func() { _ = server.Close(); wg.Wait() }, nil
}

const (
	cleanDiscoEvery = time.Minute // for the homes of jobs that are gone
	cleanDiscoNext  = time.Second // while there are more
	cleanDiscoFiles = 500         // at most, of one time
)

// cleanDisco deletes the job homes of plans that are not in the store any more, a little at a time.
// The caller calls stop.
func (a *app) cleanDisco(ctx context.Context, st store.Reader, log *slog.Logger) (stop func()) {
	return beside(ctx, func(ctx context.Context) {
		for wait := time.Duration(0); ; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
			wait = cleanDiscoEvery
			data, err := a.disco.data(a, false)
			if err != nil || data == nil {
				continue // the tasks say what is wrong
			}
			clean, err := data.Clean(ctx, cleanDiscoFiles, func(job string) (bool, error) { return jobGone(ctx, st, job) })
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				log.Warn("delete job homes of plans that are gone", "error", err)
			case !clean:
				wait = cleanDiscoNext
			}
		}
	})
}

// jobGone reports whether the store has neither the plan nor the task of a job.
func jobGone(ctx context.Context, st store.Reader, job string) (bool, error) {
	id := jobpack.JobID(job)
	if id.IsZero() {
		return false, nil // nobody knows whose it is
	}
	if _, err := st.Plan(ctx, plan.PlanID{ID: id}); !errors.Is(err, plan.ErrNotFound) {
		return false, err
	}
	tasks, err := st.Tasks(ctx, store.TaskQuery{IDs: []plan.TaskID{{ID: id}}, Limit: 1})
	return err == nil && len(tasks) == 0, err
}
