package v1

import (
	"context"
	"errors"
	"net/http"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// InGroup is the part of a path that names a group.
type InGroup struct {
	Group string `path:"group" minLength:"1" doc:"Its name."`
}

// ChangeGroup is what each request to change a group has.
type ChangeGroup struct {
	InGroup
	IfMatch IfMatch `header:"If-Match"`
}

type groupAnswer struct {
	ETag string `header:"ETag"`
	Body api.Group
}

func (a *API) queueGroups() {
	const tag = "groups"
	const match = " With If-Match, only if the settings are still those of that ETag."
	serve(a, endpoint{method: "GET", path: "/groups", id: "list-groups", summary: "List groups of queues, by name", tag: tag, scope: Read}, a.listGroups)
	serve(a, endpoint{
		method: "POST", path: "/groups", id: "create-group", summary: "Make a group of queues", tag: tag, scope: Submit, status: http.StatusCreated, errors: []int{404, 409, 422},
		doc: "A missing parent is not found. A parent that has a parent is a conflict. A group that is there with these settings is no error.",
	}, a.createGroup)
	serve(a, endpoint{method: "GET", path: "/groups/{group}", id: "get-group", summary: "Read a group of queues", tag: tag, scope: Read, errors: []int{404}}, a.getGroup)
	serve(a, endpoint{
		method: "PUT", path: "/groups/{group}", id: "set-group", summary: "Set a group of queues", tag: tag, scope: Operate, errors: []int{404, 409, 412, 422},
		doc: "All settings at once: what is left out says nothing. Nodes follow within a second, and running tasks continue." + match + " Settings that the group has already are no error.",
	}, a.setGroup)
	serve(a, endpoint{
		method: "DELETE", path: "/groups/{group}", id: "delete-group", summary: "Delete a group of queues", tag: tag, scope: Admin, status: http.StatusNoContent, errors: []int{404, 409, 412},
		doc: "Refused while a queue or a group is in it." + match,
	}, a.deleteGroup)
}

// findGroup returns all groups, and the one of that name.
func (a *API) findGroup(ctx context.Context, name string) ([]plan.Group, plan.Group, error) {
	found, err := a.st.Groups(ctx)
	if err != nil {
		return nil, plan.Group{}, err
	}
	if in := rules.GroupsOf(found, name); in != nil {
		return found, *in[0], nil
	}
	return nil, plan.Group{}, notThere("group", name)
}

func answerGroup(g *plan.Group) *groupAnswer { return &groupAnswer{api.GroupTag(g), api.GroupOf(g)} }

func (a *API) listGroups(ctx context.Context, _ *struct{}) (*api.GroupsAnswer, error) {
	found, err := a.st.Groups(ctx)
	return &api.GroupsAnswer{Groups: api.Each(found, api.GroupOf)}, err
}

func (a *API) getGroup(ctx context.Context, in *InGroup) (*groupAnswer, error) {
	_, g, err := a.findGroup(ctx, in.Group)
	return answerGroup(&g), err
}

func (a *API) createGroup(ctx context.Context, in *struct{ Body api.NewGroup }) (*groupAnswer, error) {
	g := plan.Group{Name: in.Body.Name, GroupSettings: in.Body.GroupSettings}
	if err := plan.CheckGroupName(g.Name); err != nil {
		return nil, api.InvalidAt("body.name", "group %q: %v", g.Name, err)
	}
	if err := compiler.CheckQueueName("group", g.Name); err != nil {
		return nil, api.InvalidAt("body.name", "%v", err)
	}
	found, err := a.st.Groups(ctx)
	if err == nil {
		err = a.checkGroup(found, &plan.Group{}, &g)
	}
	if err != nil {
		return nil, err
	}
	auth.Changed(ctx, g.Name)
	return a.putGroup(ctx, plan.Group{}, g)
}

// putGroup writes a group, and answers as it is then.
func (a *API) putGroup(ctx context.Context, was, g plan.Group) (*groupAnswer, error) {
	if err := a.st.PutGroup(ctx, was, g); err != nil {
		return nil, err
	}
	_, g, err := a.findGroup(ctx, g.Name)
	return answerGroup(&g), err
}

// checkGroup refuses settings that cannot be, with their place. The server may reach less than the nodes,
// so it does not ask again about an address that the group had before.
func (a *API) checkGroup(groups []plan.Group, was, g *plan.Group) error {
	if err := g.Rate.Check(); err != nil {
		return api.InvalidAt("body.rate", "%v", err)
	}
	if err := g.GroupSettings.Check(); err != nil {
		return api.InvalidAt("body.weight", "%v", err)
	}
	if err := rules.CheckKeep("keep", was.Keep, g.Keep); err != nil {
		return api.InvalidAt("body.keep", "%v", err)
	}
	for _, x := range []struct{ location, was, uri string }{
		{"body.success_uri", was.SuccessURI, g.SuccessURI}, {"body.dead_letter_uri", was.DeadLetterURI, g.DeadLetterURI},
	} {
		if x.uri == x.was || x.uri == "" || a.c.Receiver == nil {
			continue
		}
		if err := a.c.Receiver(x.uri); err != nil {
			return api.InvalidAt(x.location, "%v", err)
		}
	}
	return placed(rules.CheckGroup(groups, g), "body.parent")
}

// placed gives the place in the request to an error that a rule has for one field.
func placed(err error, location string) error {
	if err == nil {
		return nil
	}
	p := api.ProblemOf(err)
	p.Fields = []api.Field{{Message: err.Error(), Location: location}}
	return p
}

func (a *API) setGroup(ctx context.Context, in *struct {
	ChangeGroup
	Body plan.GroupSettings
}) (*groupAnswer, error) {
	return again(func() (*groupAnswer, error) { return a.trySetGroup(ctx, &in.ChangeGroup, in.Body) })
}

func (a *API) trySetGroup(ctx context.Context, in *ChangeGroup, settings plan.GroupSettings) (*groupAnswer, error) {
	found, was, err := a.findGroup(ctx, in.Group)
	if err != nil {
		return nil, err
	}
	auth.Changed(ctx, was.Name)
	g := plan.Group{Name: was.Name, GroupSettings: settings}
	if err := a.checkGroup(found, &was, &g); err != nil {
		return nil, err
	}
	if !in.IfMatch.has(api.GroupTag(&was)) && !was.Same(&g.GroupSettings) { // else it is asked again, since an answer was lost
		return nil, unlike("group", in.Group)
	}
	out, err := a.putGroup(ctx, was, g)
	return out, in.IfMatch.unmatched(err, "group", in.Group)
}

func (a *API) deleteGroup(ctx context.Context, in *ChangeGroup) (*struct{}, error) {
	found, was, err := a.findGroup(ctx, in.Group)
	if err != nil {
		return nil, err
	}
	auth.Changed(ctx, was.Name)
	if !in.IfMatch.has(api.GroupTag(&was)) {
		return nil, unlike("group", in.Group)
	}
	queues, err := a.st.Queues(ctx)
	if err == nil {
		err = rules.CheckDeleteGroup(found, queues, &was)
	}
	if err != nil {
		return nil, err
	}
	return nil, in.IfMatch.unmatched(a.st.DeleteGroup(ctx, was), "group", in.Group)
}

// again makes a change once more if another request changed the same meanwhile. With If-Match that is for
// the client to decide.
func again[T any](change func() (T, error)) (out T, err error) {
	for range 10 {
		out, err = change()
		if _, final := errors.AsType[*api.Problem](err); final || !errors.Is(err, plan.ErrConflict) {
			break
		}
	}
	return out, err
}
