//go:build !race

package den

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// rolled answers calls of Roll one after the other, and notes when they come.
type rolled struct {
	began   time.Time
	answers []error // errNot: it does not hold the role
	calls   []time.Duration
	end     context.CancelFunc
}

var errNot = errors.New("not held")

func (r *rolled) Roll(context.Context, plan.InstanceID) (held bool, next time.Duration, err error) {
	r.calls = append(r.calls, time.Since(r.began))
	if len(r.calls) > len(r.answers) {
		r.end()
		return true, time.Minute, nil
	}
	err = r.answers[len(r.calls)-1]
	if errors.Is(err, errNot) {
		return false, time.Minute, nil
	}
	return true, time.Duration(len(r.calls)) * time.Second, err
}

func TestANodeHandsOverAsLongAsItClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var log bytes.Buffer
		r := &rolled{began: time.Now(), answers: []error{nil, nil, errors.New("no room"), errNot, plan.ErrStoreGone}, end: cancel}
		(&rolling{r: r, log: slog.New(slog.NewTextHandler(&log, nil))}).run(ctx)
		if got, want := fmt.Sprint(r.calls), "[0s 1s 3s 6s 1m6s 1m11s]"; got != want {
			t.Errorf("it was asked after %s, want %s", got, want)
		}
		if said := log.String(); strings.Count(said, "this node hands over finished tasks") != 2 || strings.Count(said, "level=WARN") != 1 || !strings.Contains(said, "no room") {
			t.Errorf("the log is\n%s", said)
		}
	})
}
