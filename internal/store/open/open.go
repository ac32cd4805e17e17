// Package open chooses the driver for the URI of a store: it is the one place that links them all.
package open

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-1177d267/sluice/internal/folders"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb"
	"github.com/seed-1177d267/sluice/internal/store/sqlite"
)

// ErrURI means that the text names no store.
var ErrURI = errors.New("write sqlite:PATH or mongodb://HOST:PORT/DATABASE")

// Variable is the environment variable that names the store where nothing else does.
const Variable = "SLUICE_STORE"

// Open opens the store that the URI names: sqlite:PATH, or mongodb://…/DATABASE or mongodb+srv://…/DATABASE, and makes it if it is not
// there yet. It returns ErrURI for a text that is neither, plan.ErrUnavailable, plan.ErrNewerSchema or plan.ErrFull for a store that
// cannot be opened.
func Open(ctx context.Context, uri string) (store.Store, error) { return connect(ctx, uri, false) }

// Existing is Open for who only looks at what is there, or changes it: where there is no store it makes nothing, and returns
// plan.ErrNoStore.
func Existing(ctx context.Context, uri string) (store.Store, error) { return connect(ctx, uri, true) }

func connect(ctx context.Context, uri string, existing bool) (store.Store, error) {
	scheme, rest, ok := strings.Cut(uri, ":")
	switch {
	case uri == "":
		return nil, fmt.Errorf("no store is named, and there is no home folder to keep one in; set %s: %w", Variable, ErrURI)
	case !ok:
		return nil, fmt.Errorf("%q is not the URI of a store: %w", Redact(uri), ErrURI)
	case scheme == "sqlite" && rest != "":
		return opened(sqlite.Open(ctx, strings.TrimPrefix(rest, "//"), sqlite.Options{Existing: existing}))
	case scheme == "mongodb", scheme == "mongodb+srv":
		database, err := mongodb.Database(uri)
		if err != nil {
			return nil, fmt.Errorf("%q cannot be read; %w: %w", Redact(uri), err, ErrURI)
		}
		if database == "" {
			return nil, fmt.Errorf("%q names no database: %w", Redact(uri), ErrURI)
		}
		return opened(mongodb.Open(ctx, uri, mongodb.Options{Existing: existing}))
	}
	return nil, fmt.Errorf("%q is not the URI of a store: %w", Redact(uri), ErrURI)
}

// opened makes an interface of what a driver returns, nil if it failed.
func opened[S store.Store](s S, err error) (store.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Private makes a new, empty store that ends as it is closed. Commands do not offer it.
func Private(ctx context.Context) (store.Store, error) {
	return opened(sqlite.Private(ctx, sqlite.Options{}))
}

// Default returns the URI of the store where none is given, and whether somebody named it.
// SLUICE_STORE names it. Otherwise it is the user's own SQLite file, under $XDG_STATE_HOME/sluice
// or where the system keeps such files. It is empty if there is no home folder.
func Default() (uri string, named bool) {
	if uri := os.Getenv(Variable); uri != "" {
		return uri, true
	}
	dir := folders.State()
	if dir == "" {
		return "", false
	}
	return "sqlite:" + filepath.Join(dir, "sluice", "sluice.db"), false
}

// Files returns the files that the store of a URI writes: the database and what SQLite and Sluice keep
// beside it. It returns none for a store on a server.
func Files(uri string) []string {
	path, ok := strings.CutPrefix(uri, "sqlite:")
	if path = strings.TrimPrefix(path, "//"); !ok || path == "" {
		return nil
	}
	return sqlite.Files(path)
}

// Redact returns a URI without the secrets in it, for printing.
func Redact(uri string) string { return mongodb.Redact(uri) }
