package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"zombiezen.com/go/sqlite"
)

// machine says what was measured on: without it no figure means anything.
func (b *bench) machine(ctx context.Context) []fact {
	ninja := "not installed (Debian: apt-get install ninja-build)"
	if out, err := exec.CommandContext(ctx, "ninja", "--version").Output(); err == nil {
		ninja = strings.TrimSpace(string(out))
	}
	load, _, _ := strings.Cut(content("/proc/loadavg"), " ")
	return []fact{
		{"time", time.Now().UTC().Format(time.RFC3339)},
		{"system", system()},
		{"processor", fmt.Sprintf("%d cores, %s", runtime.NumCPU(), after("/proc/cpuinfo", "model name"))},
		{"memory", after("/proc/meminfo", "MemTotal")},
		{"load", "load average " + cmp.Or(load, "unknown") + " when it began: what else ran takes its share"},
		{"go", runtime.Version()},
		{"scratch", b.disk()},
		{"sqlite", sqliteVersion() + "; " + onSQLite.durability()},
		{"mongodb", b.mongoVersion(ctx)},
		{"ninja", ninja},
	}
}

func system() string {
	s := runtime.GOOS + "/" + runtime.GOARCH
	if release := content("/proc/sys/kernel/osrelease"); release != "" {
		s += ", kernel " + strings.TrimSpace(release)
	}
	return s
}

// content returns what a file has, nothing where there is no such file.
func content(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// after returns the value of the first "key : value" line of a file; "unknown" where there is no such file.
func after(path, key string) string {
	for line := range strings.Lines(content(path)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// disk names the file system of the databases, and the cost of a small safe write there. That is
// the least cost of a durable turn.
func (b *bench) disk() string {
	s := b.scratch
	best := ""
	for line := range strings.Lines(content("/proc/mounts")) {
		f := strings.Fields(line)
		if len(f) > 2 && (f[1] == "/" || strings.HasPrefix(b.scratch+"/", f[1]+"/")) && len(f[1]) >= len(best) {
			best = f[1]
			s = fmt.Sprintf("%s on %s", b.scratch, f[2])
		}
	}
	took, err := b.flushes(100, 0, nil)
	if err != nil {
		return s
	}
	return fmt.Sprintf("%s; write of 8 KiB and fsync: median %v, p99 %v", s, median(took), quantile(took, 0.99))
}

// flushes writes 8 KiB to a file of its own and flushes it, again and again with a pause. It
// returns how long each took, for at most n, until stop is closed.
func (b *bench) flushes(n int, pause time.Duration, stop <-chan struct{}) (took []time.Duration, err error) {
	file, err := os.CreateTemp(b.scratch, "sync")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	block := make([]byte, 8192)
	for range n {
		start := time.Now()
		if _, err := file.WriteAt(block, 0); err != nil {
			return nil, err
		}
		if err := file.Sync(); err != nil {
			return nil, err
		}
		took = append(took, time.Since(start))
		select {
		case <-stop:
			return took, nil
		case <-time.After(pause):
		}
	}
	return took, nil
}

func sqliteVersion() string {
	version := "SQLite " + sqlite.Version
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "modernc.org/sqlite" {
				version += fmt.Sprintf(" by %s %s", m.Path, m.Version)
			}
		}
	}
	return version
}

func (b *bench) mongoVersion(ctx context.Context) string {
	if why := b.missing(onMongoDB); why != "" {
		return why
	}
	var info struct {
		Version  string
		FerretDB struct{ Version string } `bson:"ferretdb"`
	}
	err := try(func() {
		client, db := rawMongoDB(b.newMongoDB(), nil)
		defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
		check(db.RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Decode(&info))
	})
	if err != nil {
		return err.Error()
	}
	name := "MongoDB " + info.Version
	if info.FerretDB.Version != "" {
		name = fmt.Sprintf("FerretDB %s (as MongoDB %s)", info.FerretDB.Version, info.Version)
	}
	return name + "; " + onMongoDB.durability()
}
