package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// A noteHandler makes notes of the node's warnings, such as a full store. Without them, a run that
// cannot continue would only seem slow.
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

// WithAttrs and WithGroup implement slog.Handler. The person knows the node's attributes, because
// the node runs here.
func (h *noteHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h *noteHandler) WithGroup(string) slog.Handler      { return h }
