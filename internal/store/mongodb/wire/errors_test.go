package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/seed-1177d267/sluice/plan"
)

func TestATryThatEndsWithItsTimeIsNoAnswer(t *testing.T) {
	for _, last := range []error{nil, context.DeadlineExceeded, context.Canceled} {
		if last != nil {
			last = topology.ConnectionError{Wrapped: fmt.Errorf("handshake: %w", last)}
		}
		err := Translate(topology.ServerSelectionError{
			Wrapped: errors.New("server selection timeout"), Desc: description.Topology{Servers: []description.Server{{Addr: "db:1", LastError: last}}},
		})
		if !errors.Is(err, plan.ErrUnavailable) || !strings.Contains(err.Error(), "cannot be reached at db:1 (no answer: timeout); ") {
			t.Errorf("after %v: %v", last, err)
		}
	}
}
