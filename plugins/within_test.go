package plugins_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-1177d267/sluice/plugins"
)

func TestWithin(t *testing.T) {
	over, cancel := context.WithCancelCause(t.Context())
	cancel(plugins.ErrTimeout)
	answers := func() (int, error) { return 3, nil }
	if n, err := plugins.Within(t.Context(), answers); n != 3 || err != nil {
		t.Errorf("what answers: %d, %v; want 3", n, err)
	}
	if n, err := plugins.Within(over, answers); n != 3 || err != nil {
		t.Errorf("what answers as its context ends: %d, %v; want 3", n, err)
	}
	end := make(chan struct{})
	defer close(end)
	if n, err := plugins.Within(over, func() (int, error) { <-end; return 3, nil }); n != 0 || !errors.Is(err, plugins.ErrTimeout) {
		t.Errorf("what hangs: %d, %v; want %v", n, err, plugins.ErrTimeout)
	}
}
