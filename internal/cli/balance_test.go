package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/balance"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/open"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plugins"
)

// A lasting store is still there after a command has closed it.
type lasting struct {
	store.Store
	parts
}

// parts are the optional parts that every driver has.
type parts interface {
	store.Documents
	store.Balance
	store.Results
	store.Packs
}

func (lasting) Close() error { return nil }

// commandsOn returns a function that runs a command on a store, and returns its output.
func commandsOn(st store.Store) func(args ...string) (code int, stdout, stderr string) {
	opened := func(context.Context, string) (store.Store, error) { return st, nil }
	return func(args ...string) (int, string, string) {
		var stdout, stderr strings.Builder
		code := Program{
			Open: opened, Existing: opened, Private: open.Private, DefaultStore: func() (string, bool) { return "memory:", true }, Redact: strings.Clone, Plugins: plugins.NewRegistry(),
			Stdout: &stdout, Stderr: &stderr, Getenv: func(string) string { return "" },
		}.Run(context.Background(), args)
		return code, stdout.String(), stderr.String()
	}
}

func balanceFileAt(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "balance.json")
	if err := os.WriteFile(path, []byte(`{"queues": [], "max_tasks": {}, "disabled": null}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestADisablementOutlivesTheRestOfAMalformedDocument(t *testing.T) {
	m := model.New(model.Options{})
	run, file, until := commandsOn(lasting{m, m}), balanceFileAt(t), time.Now().Add(time.Hour).Unix()
	for _, c := range []struct {
		disabled string
		kept     bool
	}{
		{fmt.Sprint(until), true}, {fmt.Sprintf("%q", fmt.Sprint(until)), true}, {"1000", false}, {`"rubbish"`, false}, {"null", false},
	} {
		if err := m.SetBalance(t.Context(), json.RawMessage(`{"queues": "rubbish", "disabled": `+c.disabled+"}")); err != nil {
			t.Fatal(err)
		}
		_, shown, _ := run("balance", "show")
		code, _, said := run("balance", "set", file)
		document, err := m.Balance(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b, err := balance.Parse(document)
		if err != nil || code != 0 {
			t.Fatalf("it ended with %d, %s, and left %s: %v", code, said, document, err)
		}
		if kept := b.Disabled.Unix() == until; kept != c.kept || strings.Contains(said, "it stays disabled until") != c.kept ||
			strings.Contains(shown, "disabled until") != c.kept {
			t.Errorf("disabled %s: kept %v, want %v; show says\n%s\nset says\n%s", c.disabled, kept, c.kept, shown, said)
		}
	}
}

// Several are a collection of several documents.
type several struct{ lasting }

func (several) Balance(context.Context) (json.RawMessage, error) {
	return nil, fmt.Errorf("more than one document; delete all but one: %w", balance.ErrMalformed)
}

func TestOfSeveralBalanceDocumentsNoneIsSet(t *testing.T) {
	m := model.New(model.Options{})
	run, file := commandsOn(several{lasting{m, m}}), balanceFileAt(t)
	for _, args := range [][]string{{file}, {"--disable", "1h"}, {"--enable"}, {file, "--disable", "1h"}} {
		code, _, said := run(append([]string{"balance", "set"}, args...)...)
		if document, _ := m.Balance(t.Context()); code != exitFailed || !strings.Contains(said, "delete all but one") || document != nil {
			t.Errorf("balance set %q ended with %d, and left %s; it says %s", args, code, document, said)
		}
	}
}
