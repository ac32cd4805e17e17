package cli

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/store"
)

// A store may hang, whatever its context says, as a file on a server that is gone.
func TestAKeyPressWaitsASecondForAStore(t *testing.T) {
	for name, hangs := range map[string]func(ctx, end context.Context) error{
		"a store that heeds its context": func(ctx, _ context.Context) error { <-ctx.Done(); return ctx.Err() },
		"a store that heeds nothing":     func(_, end context.Context) error { <-end.Done(); return errors.New("late") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				end, over := context.WithCancel(t.Context())
				a := &app{Program: Program{
					Existing:     func(ctx context.Context, _ string) (store.Store, error) { return nil, hangs(ctx, end) },
					DefaultStore: func() (string, bool) { return "mongodb://silent/x", true },
					Getenv:       func(string) string { return "" },
				}}
				cmd := &cobra.Command{}
				cmd.SetContext(t.Context())
				for completed, by := range map[string]cobra.CompletionFunc{
					"a plan": a.completePlan, "its task": func(c *cobra.Command, _ []string, w string) ([]string, cobra.ShellCompDirective) {
						return a.completePlan(c, []string{"p"}, w)
					},
					"an unfinished plan": a.completePlans(unended), "a queue": onlyFirst(a.completeQueueFlag),
				} {
					began := time.Now()
					words, answer := by(cmd, nil, "")
					if took := time.Since(began); took > time.Second || len(words) > 0 || answer != cobra.ShellCompDirectiveError {
						t.Errorf("%s: %q (%v) after %v, want no words after a second at most", completed, words, answer, took)
					}
				}
				over()
			})
		})
	}
}
