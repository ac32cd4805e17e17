package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// node returns the error for a node that is given a server instead of a store. Only the store
// itself can keep leases, claims and turns.
func (c *Client) node() error {
	return fmt.Errorf("a node needs the store itself, and %s is a server before one: give --store, or set SLUICE_STORE", c.shown)
}

// Register implements store.Node, as all that follows; each refuses.
func (c *Client) Register(context.Context, plan.Instance) error { return c.node() }

// Beat refuses.
func (c *Client) Beat(context.Context, protocol.Beat) (protocol.Beaten, error) {
	return protocol.Beaten{}, c.node()
}

// Leave refuses.
func (c *Client) Leave(context.Context, plan.InstanceID) error { return c.node() }

// Turn refuses.
func (c *Client) Turn(context.Context, protocol.Turn) (protocol.Turned, error) {
	return protocol.Turned{}, c.node()
}

// Start refuses.
func (c *Client) Start(context.Context, []protocol.Claim) ([]plan.TaskID, error) {
	return nil, c.node()
}

// Take refuses.
func (c *Client) Take(context.Context, protocol.Take) (protocol.ClaimedTask, error) {
	return protocol.ClaimedTask{}, c.node()
}

// AppendLog refuses.
func (c *Client) AppendLog(context.Context, protocol.Claim, []plan.LogEntry) error { return c.node() }

// Sweep refuses.
func (c *Client) Sweep(context.Context, protocol.Sweep) (protocol.Swept, error) {
	return protocol.Swept{}, c.node()
}

// Failures refuses.
func (c *Client) Failures(context.Context, plan.TaskID) (json.RawMessage, error) {
	return nil, c.node()
}

// Rescue refuses.
func (c *Client) Rescue(context.Context, plan.InstanceID, int64) (int, error) { return 0, c.node() }

// Expire refuses.
func (c *Client) Expire(context.Context, int) (protocol.Expired, error) {
	return protocol.Expired{}, c.node()
}

// Wakes returns nil: it cannot tell.
func (c *Client) Wakes(context.Context) <-chan struct{} { return nil }

// Hold implements store.Roles for nodes, and refuses.
func (c *Client) Hold(context.Context, protocol.Role, plan.InstanceID) (bool, error) {
	return false, c.node()
}

// SetThreads implements store.Balance for who holds the role, and refuses.
func (c *Client) SetThreads(context.Context, plan.Queue, int) error { return c.node() }

// PutResults implements store.Results for nodes, and refuses.
func (c *Client) PutResults(context.Context, protocol.Claim, *io.SectionReader, *io.SectionReader, protocol.GFS) error {
	return c.node()
}

// OpenPack implements store.Packs for nodes, and refuses.
func (c *Client) OpenPack(context.Context, plan.PlanID) (io.ReadCloser, int64, error) {
	return nil, 0, c.node()
}
