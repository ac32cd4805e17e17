//go:build unix

package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/open"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/demo"
)

func TestAWorkerThatIsStoppedWhileItOpensItsStoreEndsWell(t *testing.T) {
	for _, c := range []struct {
		name string
		err  func(ctx context.Context) error // of the store that was being opened
	}{
		{"the store says that it was stopped", func(ctx context.Context) error { return fmt.Errorf("open the store: %w", ctx.Err()) }},
		{"it says why", context.Cause},
		{"it takes that for a store that is away", func(ctx context.Context) error { return fmt.Errorf("%w: %w", plan.ErrUnavailable, ctx.Err()) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			opens := func(ctx context.Context, _ string) (store.Store, error) {
				if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
					t.Error(err)
				}
				<-ctx.Done()
				return nil, c.err(ctx)
			}
			var said strings.Builder
			reg := plugins.NewRegistry()
			reg.Register(demo.Name, demo.Plugin)
			code := Program{
				Open: opens, Existing: opens, Private: open.Private, DefaultStore: func() (string, bool) { return "", false }, Redact: func(uri string) string { return uri },
				Plugins: reg, Version: "v1.2.3", Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &said,
				Getenv: func(string) string { return "" },
			}.Run(t.Context(), []string{"worker", "--store", "mongodb://127.0.0.1:1/none", "--allow", demo.Name})
			if code != exitOK {
				t.Errorf("exit %d, want %d; it said %s", code, exitOK, said.String())
			}
		})
	}
}
