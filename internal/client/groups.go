package client

import (
	"context"
	"fmt"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/plan"
)

// Groups implements store.Reader.
func (c *Client) Groups(ctx context.Context) ([]plan.Group, error) {
	got, err := get[api.GroupsAnswer](ctx, c, nil, "groups")
	return api.Domain[plan.Group](got.Groups), err
}

// PutGroup implements store.Admin.
func (c *Client) PutGroup(ctx context.Context, was, g plan.Group) error {
	if was.Name == "" {
		return c.do(ctx, &request{method: "POST", path: in("groups"), body: &api.NewGroup{Name: g.Name, GroupSettings: g.GroupSettings}, again: true, timeout: lookTime}, nil)
	}
	if was.Name != g.Name {
		return fmt.Errorf("group %q was read as %q: %w", g.Name, was.Name, plan.ErrConflict)
	}
	r := &request{method: "PUT", path: in("groups", g.Name), match: api.GroupTag(&was), body: &g.GroupSettings, again: true, timeout: lookTime}
	return c.do(ctx, r, nil)
}

// DeleteGroup implements store.Admin.
func (c *Client) DeleteGroup(ctx context.Context, was plan.Group) error {
	return c.do(ctx, &request{method: "DELETE", path: in("groups", was.Name), match: api.GroupTag(&was), timeout: lookTime}, nil)
}
