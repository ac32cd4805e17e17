package mongodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/auth"

	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
)

// Users are roles of a database, and a user of the same name for each.
type Users struct {
	Database  string            // whose collections the roles are about, and which keeps the roles
	In        string            // the database that keeps the users
	Roles     []Role            // each needs a password
	Passwords map[string]string // by name of the role
	Drop      bool              // what is there of these is dropped and made anew, instead of changed
}

// ErrNoRoles means that the server keeps no roles: it is not MongoDB.
var ErrNoRoles = errors.New("the server keeps no roles, and so cannot tell users apart")

// A Command is one for the server, with the database that it is sent to.
type Command struct {
	database string
	doc      bson.D
}

// String is the command as JSON, with *** for the password. The database is its $db, as in MongoDB's protocol.
func (c Command) String() string {
	shown := slices.Clone(c.doc)
	for i := range shown {
		if shown[i].Key == "pwd" {
			shown[i].Value = "***"
		}
	}
	text, err := bson.MarshalExtJSON(append(shown, bson.E{Key: "$db", Value: c.database}), false, false)
	if err != nil {
		return "{}" // no command here has a value without JSON
	}
	return string(text)
}

// A kind is roles or users: what the server's commands call one, and the database that keeps them.
type kind struct {
	word, in string
	say      func(command string, r *Role) Command // makes or changes one
}

func (u *Users) kinds() []kind {
	return []kind{{"Role", u.Database, u.role}, {"User", u.In, u.user}}
}

// Commands returns those by which a server that has none of the roles and users gets them. It changes those that it has by updateRole and
// updateUser, which say the same.
func (u *Users) Commands() (all []Command) {
	for _, k := range u.kinds() {
		for i := range u.Roles {
			all = append(all, k.say("create"+k.word, &u.Roles[i]))
		}
	}
	return all
}

func (u *Users) role(command string, r *Role) Command {
	privileges := bson.A{}
	for i := range r.Privileges {
		p := &r.Privileges[i]
		privileges = append(privileges, d("resource", d("db", u.Database, "collection", p.Collection), "actions", p.all()))
	}
	return Command{u.Database, d(command, r.Name, "privileges", privileges, "roles", bson.A{}, "writeConcern", d("w", "majority"))}
}

func (u *Users) user(command string, r *Role) Command {
	has := bson.A{d("role", r.Name, "db", u.Database)}
	return Command{u.In, d(command, r.Name, "pwd", u.Passwords[r.Name], "roles", has, "writeConcern", d("w", "majority"))}
}

// Make brings a server to have the roles and users, and no other privileges, roles or passwords for them. The URI is an administrator's.
// It may be called again, also after it failed half-way; it calls done after each change with what that was, as in "created role
// disbatchd". It returns ErrNoRoles, and has changed nothing, for a server that keeps no roles, plan.ErrUnavailable for one that cannot be
// reached, or does not let the administrator in or do this.
func (u *Users) Make(ctx context.Context, uri string, done func(what string)) error {
	client, _, err := wire.Connect(uri, nil)
	if err != nil {
		return err
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	m := &maker{client: client, done: done, databases: u.Database}
	if u.In != u.Database {
		m.databases += " and " + u.In
	}
	// Both are asked for before anything is changed: there are servers that take createUser, know no roles, and let each user do everything.
	there := map[string]bool{}
	for _, k := range u.kinds() {
		word := strings.ToLower(k.word)
		var names bson.A
		for _, r := range u.Roles {
			names = append(names, d(word, r.Name, "db", k.in))
		}
		var found struct {
			Roles, Users []struct{ Role, User, DB string }
		}
		if err := m.run(ctx, Command{k.in, d(word+"sInfo", names)}, &found); err != nil {
			return err
		}
		for _, one := range slices.Concat(found.Roles, found.Users) {
			if one.DB == k.in {
				there[word+" "+one.Role+one.User] = true
			}
		}
	}
	for _, r := range u.Roles {
		for _, k := range slices.Backward(u.kinds()) {
			if one := strings.ToLower(k.word) + " " + r.Name; u.Drop && there[one] {
				m.change(ctx, "dropped "+one, Command{k.in, d("drop"+k.word, r.Name, "writeConcern", d("w", "majority"))})
			}
		}
	}
	for _, k := range u.kinds() {
		for i := range u.Roles {
			command, one := "create", strings.ToLower(k.word)+" "+u.Roles[i].Name
			if there[one] && !u.Drop {
				command = "update"
			}
			m.change(ctx, command+"d "+one, k.say(command+k.word, &u.Roles[i]))
		}
	}
	return m.err
}

// A maker sends commands until one fails.
type maker struct {
	client *mongo.Client
	done   func(what string)
	err    error

	databases string // that the administrator has to be one of, in words
}

func (m *maker) change(ctx context.Context, what string, c Command) {
	if m.err != nil {
		return
	}
	if m.err = m.run(ctx, c, nil); m.err == nil {
		m.done(what)
	}
}

func (m *maker) run(ctx context.Context, c Command, reply any) error {
	result := m.client.Database(c.database).RunCommand(ctx, c.doc)
	err := result.Err()
	if err == nil && reply != nil {
		err = result.Decode(reply)
	}
	if err == nil {
		return nil
	}
	name := c.doc[0].Key
	reports, _ := errors.AsType[mongo.CommandError](err)
	_, refused := errors.AsType[*auth.Error](err)
	switch {
	case reports.Code == wire.CodeNoCommand:
		return fmt.Errorf("%s: %w (%s); make its users as its own manual says", name, ErrNoRoles, reports.Message)
	case reports.Code == wire.CodeUnauthorized:
		why, _, _ := strings.Cut(reports.Message, " to execute command")
		return &wire.Unreachable{What: "MongoDB refuses " + name + ": " + why,
			Remedy: "the administrator needs the role userAdmin of " + m.databases + ", or userAdminAnyDatabase", Err: wire.Redacted(err)}
	case (refused || reports.Code == wire.CodeNotAuthentic) && !mongo.IsNetworkError(err) && !mongo.IsTimeout(err):
		return &wire.Unreachable{What: "MongoDB refuses the administrator: authentication failed",
			Remedy: "check the name, the password, and the database that keeps this user", Err: err}
	}
	return fmt.Errorf("%s: %w", name, wire.Translate(err))
}
