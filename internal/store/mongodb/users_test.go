package mongodb

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/plan"
)

// A keeper is a server of MongoDB's protocol that keeps roles and users, and nothing else. It remembers each command that it was sent.
type keeper struct {
	mu     sync.Mutex
	there  map[string]bool // "role NAME DATABASE" and "user NAME DATABASE"
	got    []bson.D
	refuse map[string]bson.D // command → what it answers instead
}

// serve starts the server, and returns its URI.
func (k *keeper) serve(t *testing.T) (uri string) {
	k.there = map[string]bool{}
	return "mongodb://" + serve(t, k.talk) + "/disbatch?serverSelectionTimeoutMS=5000"
}

// talk answers messages of MongoDB's protocol: the first is an OP_QUERY, as of a client that knows nothing of its server yet.
func (k *keeper) talk(c net.Conn) {
	const opQuery, opReply, opMsg = 2004, 1, 2013
	for {
		head := make([]byte, 16)
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		body := make([]byte, binary.LittleEndian.Uint32(head)-16)
		if _, err := io.ReadFull(c, body); err != nil {
			return
		}
		answer := make([]byte, 16)
		copy(answer[8:], head[4:8]) // in reply to which message
		var command, reply bson.D
		if binary.LittleEndian.Uint32(head[12:]) == opQuery {
			body = body[4+len("admin.$cmd\x00")+8:]
			binary.LittleEndian.PutUint32(answer[12:], opReply)
			answer = append(answer, make([]byte, 20)...)
			answer[32] = 1 // one document
		} else {
			body = body[5:]
			binary.LittleEndian.PutUint32(answer[12:], opMsg)
			answer = append(answer, make([]byte, 5)...)
		}
		if err := bson.Unmarshal(body, &command); err != nil {
			return
		}
		switch reply = k.answer(command); command[0].Key {
		case "hello", "isMaster", "ismaster":
			reply = d("ok", 1, "helloOk", true, "ismaster", true, "isWritablePrimary", true, "maxBsonObjectSize", 16<<20, "maxMessageSizeBytes", 48<<20,
				"maxWriteBatchSize", 100_000, "localTime", time.Now(), "minWireVersion", 0, "maxWireVersion", 21)
		}
		raw, err := bson.Marshal(reply)
		if err != nil {
			return
		}
		answer = append(answer, raw...)
		binary.LittleEndian.PutUint32(answer, uint32(len(answer)))
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

func (k *keeper) answer(command bson.D) bson.D {
	name, about := command[0].Key, command[0].Value
	if name == "hello" || strings.EqualFold(name, "ismaster") {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.got = append(k.got, command)
	if reply, ok := k.refuse[name]; ok {
		return reply
	}
	var database string
	for _, e := range command {
		if e.Key == "$db" {
			database = e.Value.(string)
		}
	}
	kind := "user"
	if strings.Contains(name, "ole") {
		kind = "role"
	}
	switch name {
	case "rolesInfo", "usersInfo":
		found := bson.A{}
		for _, asked := range about.(bson.A) {
			of := asked.(bson.D) // {role: NAME, db: DATABASE}
			if k.there[kind+" "+of[0].Value.(string)+" "+of[1].Value.(string)] {
				found = append(found, append(of, bson.E{Key: "isBuiltin", Value: false}))
			}
		}
		return d("ok", 1, kind+"s", found)
	}
	what := kind + " " + about.(string) + " " + database
	if wants := !strings.HasPrefix(name, "create"); k.there[what] != wants {
		return d("ok", 0, "code", 51002, "errmsg", what+" is there, or is not")
	}
	k.there[what] = !strings.HasPrefix(name, "drop")
	return d("ok", 1)
}

// sent returns the commands that were sent since it was last asked.
func (k *keeper) sent() (all []bson.D) {
	k.mu.Lock()
	defer k.mu.Unlock()
	all, k.got = k.got, nil
	return all
}

// names is sent, of each command its name and what it is about.
func (k *keeper) names() (all []string) {
	for _, c := range k.sent() {
		if name, ok := c[0].Value.(string); ok {
			all = append(all, c[0].Key+" "+name)
		} else {
			all = append(all, c[0].Key)
		}
	}
	return all
}

func someUsers() *Users {
	return &Users{
		Database: "disbatch", In: "accounts", Passwords: map[string]string{"disbatchd": "s3cret", "plugin": "0ther"},
		Roles: []Role{Roles()[0], {Name: "plugin", Privileges: []Privilege{{Collection: "", Actions: []string{"find"}}}}},
	}
}

func TestUsersAreMadeAndThenChanged(t *testing.T) {
	k := &keeper{}
	uri := k.serve(t)
	for _, c := range []struct {
		name       string
		drop       bool
		sent, said []string
	}{
		{"on a server that has none", false,
			[]string{"rolesInfo", "usersInfo", "createRole disbatchd", "createRole plugin", "createUser disbatchd", "createUser plugin"},
			[]string{"created role disbatchd", "created role plugin", "created user disbatchd", "created user plugin"}},
		{"again", false,
			[]string{"rolesInfo", "usersInfo", "updateRole disbatchd", "updateRole plugin", "updateUser disbatchd", "updateUser plugin"},
			[]string{"updated role disbatchd", "updated role plugin", "updated user disbatchd", "updated user plugin"}},
		{"anew", true,
			[]string{
				"rolesInfo", "usersInfo", "dropUser disbatchd", "dropRole disbatchd", "dropUser plugin", "dropRole plugin",
				"createRole disbatchd", "createRole plugin", "createUser disbatchd", "createUser plugin",
			},
			[]string{
				"dropped user disbatchd", "dropped role disbatchd", "dropped user plugin", "dropped role plugin",
				"created role disbatchd", "created role plugin", "created user disbatchd", "created user plugin",
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := someUsers()
			u.Drop = c.drop
			var said []string
			noError(t)(u.Make(t.Context(), uri, func(what string) { said = append(said, what) }))
			if sent := k.names(); !slices.Equal(sent, c.sent) {
				t.Errorf("sent %q, want %q", sent, c.sent)
			}
			if !slices.Equal(said, c.said) {
				t.Errorf("said %q, want %q", said, c.said)
			}
		})
	}
}

func TestWhatIsShownIsWhatIsSentButForPasswords(t *testing.T) {
	k := &keeper{}
	u := someUsers()
	noError(t)(u.Make(t.Context(), k.serve(t), func(string) {}))
	var sent []string
	for _, c := range k.sent()[2:] {
		var doc bson.D // without what the driver adds
		for _, e := range c {
			if e.Key == "pwd" && e.Value != u.Passwords[c[0].Value.(string)] {
				t.Errorf("%v has another password than it was given", c)
			}
			if !slices.Contains([]string{"lsid", "$readPreference", "$db", "$clusterTime"}, e.Key) {
				doc = append(doc, e)
			}
		}
		in := "disbatch"
		if c[0].Key == "createUser" {
			in = "accounts"
		}
		sent = append(sent, Command{in, doc}.String())
		if !slices.Contains(c, bson.E{Key: "$db", Value: in}) {
			t.Errorf("%v went to another database than %s", c, in)
		}
	}
	var shown []string
	for _, c := range u.Commands() {
		shown = append(shown, c.String())
	}
	if !slices.Equal(shown, sent) {
		t.Errorf("shown\n%s\nsent\n%s", strings.Join(shown, "\n"), strings.Join(sent, "\n"))
	}
	want := `{"createUser":"disbatchd","pwd":"***","roles":[{"role":"disbatchd","db":"disbatch"}],"writeConcern":{"w":"majority"},"$db":"accounts"}`
	if len(shown) != 4 || shown[2] != want {
		t.Errorf("shown\n%s\nwant as the third\n%s", strings.Join(shown, "\n"), want)
	}
}

func TestWhatWasLeftHalfWayIsEndedByTheNextCall(t *testing.T) {
	k := &keeper{refuse: map[string]bson.D{"createUser": d("ok", 0, "code", 9001, "errmsg", "socket exception")}}
	uri := k.serve(t)
	if err := someUsers().Make(t.Context(), uri, func(string) {}); err == nil || !strings.Contains(err.Error(), "createUser: ") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v, want an error that names createUser and no password", err)
	}
	k.names()
	k.refuse = nil
	noError(t)(someUsers().Make(t.Context(), uri, func(string) {}))
	want := []string{"rolesInfo", "usersInfo", "updateRole disbatchd", "updateRole plugin", "createUser disbatchd", "createUser plugin"}
	if sent := k.names(); !slices.Equal(sent, want) {
		t.Errorf("sent %q, want %q", sent, want)
	}
}

func TestMakingUsersSaysWhatIsInTheWay(t *testing.T) {
	for _, c := range []struct {
		name, command string
		reply         bson.D
		is            error
		says          string
	}{
		{"a server without roles", "rolesInfo", d("ok", 0, "code", 59, "codeName", "CommandNotFound", "errmsg", "no such command: 'rolesInfo'"), ErrNoRoles,
			"rolesInfo: the server keeps no roles, and so cannot tell users apart (no such command: 'rolesInfo'); make its users as its own manual says"},
		{"an administrator who may not", "usersInfo",
			d("ok", 0, "code", 13, "codeName", "Unauthorized", "errmsg", "not authorized on accounts to execute command { usersInfo: [] }"), plan.ErrUnavailable,
			"MongoDB refuses usersInfo: not authorized on accounts; the administrator needs the role userAdmin of disbatch and accounts, " +
				"or userAdminAnyDatabase"},
		{"an action that MongoDB does not know", "createRole", d("ok", 0, "code", 2, "errmsg", "Unrecognized action privilege string: updat"), nil,
			"createRole: Unrecognized action privilege string: updat"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := &keeper{refuse: map[string]bson.D{c.command: c.reply}}
			err := someUsers().Make(t.Context(), k.serve(t), func(what string) { t.Errorf("it %s", what) })
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %v and %q", err, c.is, c.says)
			}
		})
	}
}

// On a server that knows roles all is made, and changed; on another one nothing is: FerretDB takes createUser, and lets such a user do
// everything.
func TestUsersOnTheServer(t *testing.T) {
	uri, db := fresh(t)
	u := someUsers()
	u.Database, u.In = db.Name(), db.Name()
	u.Roles = []Role{{Name: "sluice_test_role", Privileges: u.Roles[0].Privileges}}
	u.Passwords = map[string]string{"sluice_test_role": "s3cret"}
	err := u.Make(t.Context(), uri, func(string) {})
	if errors.Is(err, ErrNoRoles) {
		left, err := db.RunCommand(t.Context(), d("usersInfo", "sluice_test_role")).Raw()
		if err == nil && strings.Contains(left.String(), "sluice_test_role") {
			t.Errorf("a user was made all the same: %v", left)
		}
		return
	}
	noError(t)(err)
	t.Cleanup(func() {
		_ = db.RunCommand(t.Context(), d("dropUser", "sluice_test_role"))
		_ = db.RunCommand(t.Context(), d("dropRole", "sluice_test_role"))
	})
	var said []string
	noError(t)(u.Make(t.Context(), uri, func(what string) { said = append(said, what) }))
	if want := []string{"updated role sluice_test_role", "updated user sluice_test_role"}; !slices.Equal(said, want) {
		t.Errorf("the second time it %q, want %q", said, want)
	}
}
