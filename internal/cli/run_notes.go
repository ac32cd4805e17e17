package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// A noteHandler makes notes of what the node that runs a plan warns of, such as a store that is full: else a run that cannot go on would
// only seem slow.
type noteHandler struct {
	notes chan<- note
}

// Enabled implements slog.Handler.
func (h *noteHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// Handle implements slog.Handler. It never blocks: where nobody reads, a warning more or less does not matter.
func (h *noteHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "node: %s", r.Message)
	stopped := false
	r.Attrs(func(a slog.Attr) bool {
		err, _ := a.Value.Any().(error)
		stopped = stopped || errors.Is(err, context.Canceled) // what was under way as the node ended
		if a.Key == "error" {
			fmt.Fprintf(&b, ": %v", a.Value)
		} else {
			fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		}
		return true
	})
	if stopped {
		return nil
	}
	select {
	case h.notes <- note{text: b.String()}:
	default:
	}
	return nil
}

// WithAttrs and WithGroup implement slog.Handler. What a node says of itself a person knows: it is the one that runs here.
func (h *noteHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h *noteHandler) WithGroup(string) slog.Handler      { return h }
