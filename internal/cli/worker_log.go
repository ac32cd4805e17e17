package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/seed-1177d267/sluice/internal/config"
	"github.com/seed-1177d267/sluice/internal/textfile"
)

// A denLog is where a node logs, and from which level on. Flags say both, else the configuration
// file, else standard error and info. Both may change while it is written.
type denLog struct {
	*slog.Logger
	level   slog.LevelVar
	out     logFiles
	ofFlags config.Log
	byFlags struct{ level, file bool } // which of ofFlags were given
}

// newDenLog opens the log. The words are those of flags; "" is one that was not given.
// spare is asked before a file is opened by its name: it refuses one that is something else by now.
func newDenLog(stderr io.Writer, format, level, file string, c config.Log, spare func(path string) error) (*denLog, error) {
	l := &denLog{out: logFiles{stderr: stderr, spare: spare}}
	if level != "" {
		l.byFlags.level = true
		if err := l.ofFlags.Level.UnmarshalText([]byte(strings.ToUpper(level))); err != nil {
			return nil, usagef("--log-level %s: %w", level, err)
		}
	}
	if file != "" {
		l.byFlags.file = true
		if file != "-" {
			l.ofFlags.Files = []string{file}
		}
	}
	options := &slog.HandlerOptions{Level: &l.level}
	if l.Logger = slog.New(slog.NewTextHandler(&l.out, options)); format == "json" {
		l.Logger = slog.New(slog.NewJSONHandler(&l.out, options))
	}
	return l, l.use(c)
}

// use logs as a configuration file says from now on, unless a flag says otherwise, and opens files
// again. If a file cannot be written, nothing changes.
func (l *denLog) use(c config.Log) error {
	if !c.Given {
		c = config.Log{Level: slog.LevelInfo}
	}
	if l.byFlags.file {
		c.Files = l.ofFlags.Files
	}
	if l.byFlags.level {
		c.Level = l.ofFlags.Level
	}
	if err := l.out.open(c.Files); err != nil {
		return usagef("the log %w; let this user write it, or give --log-file another one (-: standard error)", err)
	}
	l.level.Set(c.Level)
	return nil
}

// mistakes logs what is wrong with a configuration file, or probably not meant in it.
func (l *denLog) mistakes(level slog.Level, found []textfile.Error) {
	for _, w := range found {
		l.Log(context.Background(), level, "config", "file", w.File, "line", w.Line, "column", w.Column, "message", w.Message)
	}
}

// reload reads the configuration file again, if there is one, and opens the log's files again,
// because somebody may have moved them away. If the file cannot be used, reload logs its mistakes,
// and nothing changes. It returns the configuration that holds from now on.
func (l *denLog) reload(now *config.Config) *config.Config {
	if now.Name == "" {
		l.reopen(now.Log)
		return now
	}
	next, err := config.Read(now.Name)
	var wrong textfile.Errors
	if err == nil {
		_, err = next.URI(config.Disbatchd)
	}
	switch {
	case errors.As(err, &wrong):
		l.mistakes(slog.LevelError, wrong)
	case err != nil:
		l.Error("config", "error", err)
	}
	if err != nil {
		l.Error("the configuration is not taken over; all stays as it was", "file", now.Name)
		l.reopen(now.Log)
		return now
	}
	l.mistakes(slog.LevelWarn, next.Warnings)
	taken := l.reopen(next.Log)
	if !taken {
		next.Log = now.Log
	}
	for _, key := range next.Changed(now) {
		l.Warn("config: this key changed; restart the node to use it", "file", next.Name, "key", key)
	}
	if taken {
		l.Info("configuration read", "file", next.Name, "log_level", l.level.Level())
	} else {
		l.Error("the configuration was read, and what it says of the log is not taken over: its files and level stay as they were",
			"file", next.Name, "log_level", l.level.Level())
	}
	return next
}

func (l *denLog) reopen(c config.Log) bool {
	err := l.use(c)
	if err != nil {
		l.Error("log; it stays where it was", "error", err)
	}
	return err == nil
}

// logFiles writes each line to all of its files, or to standard error if it has none.
type logFiles struct {
	stderr io.Writer
	spare  func(path string) error

	mu    sync.Mutex
	files []*os.File
}

func (f *logFiles) open(paths []string) error {
	files := make([]*os.File, 0, len(paths))
	for _, path := range paths {
		var file *os.File
		err := f.spare(path)
		if err == nil {
			file, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
		}
		if err != nil {
			closeAll(files)
			return fmt.Errorf("cannot be written: %w", err)
		}
		files = append(files, file)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	closeAll(f.files)
	f.files = files
	return nil
}

// Close has what is still said go to standard error.
func (f *logFiles) Close() error { return f.open(nil) }

func closeAll(files []*os.File) {
	for _, file := range files {
		_ = file.Close() // each line was written at once
	}
}

func (f *logFiles) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.files) == 0 {
		return f.stderr.Write(line)
	}
	var failed error
	for _, file := range f.files {
		if _, err := file.Write(line); err != nil {
			failed = err
		}
	}
	return len(line), failed
}
