package sqlite

import (
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/folders"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var update = flag.Bool("update", false, "write the database of the present schema to testdata")

func TestOpenMakesWhatOnlyItsOwnerReads(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("Windows keeps permissions in other ways")
		return
	}
	dir := filepath.Join(t.TempDir(), "state", "sluice")
	s := openAt(t, filepath.Join(dir, "sluice.db"), Options{})
	defer s.Close()
	newPlan(t, s, "nightly") // so that there is a write-ahead log
	err := filepath.WalkDir(filepath.Dir(dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has permissions %o, want %o", path, got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// foreign makes a database that is none of ours.
func foreign(t *testing.T, path, script string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := dial("file:" + path)
	if err != nil {
		t.Fatal(err)
	}
	c.script(script)
	if err := errors.Join(c.err, c.close()); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		file func(t *testing.T, path string)
		want error
		text string
	}{
		{"a file of a newer program", func(t *testing.T, path string) {
			s := openAt(t, path, Options{})
			s.w.script("PRAGMA user_version = 1000")
			closeStore(t, s)
		}, plan.ErrNewerSchema, "use a newer sluice"},
		{"another program's database", func(t *testing.T, path string) {
			foreign(t, path, "CREATE TABLE mine (x)")
		}, plan.ErrUnavailable, "the database of another program"},
		{"another program's database that counts its schemas too", func(t *testing.T, path string) {
			foreign(t, path, "CREATE TABLE mine (x); PRAGMA user_version = 1")
		}, plan.ErrUnavailable, "the database of another program"},
		{"a file of a program before the first release", func(t *testing.T, path string) {
			s := openAt(t, path, Options{})
			s.w.script("PRAGMA user_version = 18")
			closeStore(t, s)
		}, plan.ErrUnavailable, "the oldest that this program reads is 19; finish its plans with the sluice that made it"},
		{"a file that is no database", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("what is this? ", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, plan.ErrUnavailable, "is not a SQLite database"},
		{"a folder", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, plan.ErrUnavailable, "sluice.db is a directory; name a file, as in sqlite:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(folders.Resolve(t.TempDir()), "sluice.db")
			c.file(t, path)
			before, _ := os.ReadFile(path) // a folder cannot be read
			s, err := Open(t.Context(), path, Options{})
			if err == nil {
				closeStore(t, s)
			}
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), path) {
				t.Errorf("got error %v, want one that is %q, names the file and says %q", err, c.want, c.text)
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestOpenRefusesNoPath(t *testing.T) {
	if _, err := Open(t.Context(), "", Options{}); !errors.Is(err, plan.ErrUnavailable) {
		t.Errorf("got error %v, want one that is %v", err, plan.ErrUnavailable)
	}
}

func TestOpenOfAnExistingStoreMakesNone(t *testing.T) {
	for _, c := range []struct {
		name string
		file func(t *testing.T, path string)
	}{
		{"no folder", func(*testing.T, string) {}},
		{"no file", func(t *testing.T, path string) {
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
		}},
		{"a file with nothing in it", func(t *testing.T, path string) {
			if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := folders.Resolve(t.TempDir())
			path := filepath.Join(dir, "state", "sluice.db")
			c.file(t, path)
			before := listed(t, dir)
			s, err := Open(t.Context(), path, Options{Existing: true})
			if err == nil {
				closeStore(t, s)
			}
			if !errors.Is(err, plan.ErrNoStore) || !strings.Contains(err.Error(), path) {
				t.Errorf("got error %v, want one that is %q and names the file", err, plan.ErrNoStore)
			}
			if after := listed(t, dir); !slices.Equal(after, before) {
				t.Errorf("there is %q, want %q as before", after, before)
			}
			closeStore(t, openAt(t, path, Options{})) // as who submits something does
			closeStore(t, openAt(t, path, Options{Existing: true}))
		})
	}
}

func TestAnEmptyFileThatBecomesAStoreIsTheOwnersAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such permissions")
	}
	path := filepath.Join(t.TempDir(), "sluice.db")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o664)); err != nil {
		t.Fatal(err)
	}
	closeStore(t, openAt(t, path, Options{}))
	if got := permissions(t, path); got != 0o600 {
		t.Errorf("the file is %v, want it to be its owner's alone", got)
	}
	// The owner may let others read the file.
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	closeStore(t, openAt(t, path, Options{}))
	if got := permissions(t, path); got != 0o640 {
		t.Errorf("the store that was there is %v, want it as before", got)
	}
}

func TestAStoreBehindLinksIsTheOneThatTheyLeadTo(t *testing.T) {
	for _, c := range []struct {
		name  string
		links [][2]string // where each is, and what it says
		path  string
		real  string
		there bool // the file is, before it is opened through the links
	}{
		{"the file", [][2]string{{"x.db", "real/p.db"}}, "x.db", "real/p.db", true},
		{"the file, which is not there yet", [][2]string{{"x.db", "real/p.db"}}, "x.db", "real/p.db", false},
		{"the file, by links to links", [][2]string{{"x.db", "DIR/other/y.db"}, {"other/y.db", "../real/p.db"}}, "x.db", "real/p.db", false},
		{"its folder", [][2]string{{"link", "real"}}, "link/p.db", "real/p.db", true},
		{"its folder, and the file is not there yet", [][2]string{{"link", "real"}}, "link/p.db", "real/p.db", false},
		{"its folder, which is not there yet", [][2]string{{"link", "DIR/new/deep"}}, "link/p.db", "new/deep/p.db", false},
		{"the file, by the parent of a folder behind a link", [][2]string{{"other/link", "DIR/real/sub"}, {"x.db", "other/link/../p.db"}}, "x.db", "real/p.db", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := folders.Resolve(t.TempDir())
			at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
			if err := errors.Join(os.MkdirAll(at("real/sub"), 0o700), os.Mkdir(at("other"), 0o700)); err != nil {
				t.Fatal(err)
			}
			for _, l := range c.links {
				if err := os.Symlink(filepath.FromSlash(strings.Replace(l[1], "DIR", dir, 1)), at(l[0])); err != nil {
					t.Skipf("links cannot be made here: %v", err)
				}
			}
			real := at(c.real)
			if c.there {
				closeStore(t, openAt(t, real, Options{}))
			}
			s := openAt(t, at(c.path), Options{})
			defer s.Close()
			newPlan(t, s, "nightly", task{name: "a"})
			if s.path != real {
				t.Errorf("the file is %s, want %s", s.path, real)
			}
			for _, beside := range []string{"", "-wal", "-shm", "-next", "-turn"} {
				if _, err := os.Lstat(real + beside); err != nil {
					t.Error(err)
				}
			}
			// The lock holds for processes that know the file by another name.
			other := openAt(t, real, Options{})
			defer other.Close()
			if err := other.lock(t.Context()); err != nil {
				t.Fatal(err)
			}
			ok, err := s.turn.try()
			if ok || err != nil {
				t.Errorf("two have the turn: %v, %v", ok, err)
			}
			other.unlock()
			if err := errors.Join(os.Rename(real, real+".old"), os.WriteFile(real, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			if err := s.there(); !errors.Is(err, plan.ErrStoreGone) {
				t.Errorf("the file was replaced: got error %v, want one that is %q", err, plan.ErrStoreGone)
			}
		})
	}
}

func TestLinksThatLeadNowhereAreSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	if err := os.Symlink("x.db", path); err != nil {
		t.Skipf("links cannot be made here: %v", err)
	}
	if s, err := Open(t.Context(), path, Options{}); !errors.Is(err, plan.ErrUnavailable) {
		t.Errorf("got %v, %v; want an error that is %q", s, err, plan.ErrUnavailable)
	}
}

func permissions(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

// listed returns what is in a folder and below it, each with its size.
func listed(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			all = append(all, path)
			return err
		}
		info, err := d.Info()
		if err == nil {
			all = append(all, fmt.Sprintf("%s, %d bytes", path, info.Size()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAPathMayHoldAnything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c=d&e#f%20g", "ü.db")
	if runtime.GOOS == "windows" {
		path = filepath.Join(t.TempDir(), "a b&e#f%20g", "ü.db")
	}
	s := openAt(t, path, Options{})
	defer s.Close()
	newPlan(t, s, "nightly")
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// asSchema21 takes the migrations to the schemas 22 to 32 back.
const asSchema21 = `DROP INDEX tasks_finally; ALTER TABLE plans DROP COLUMN ending; ALTER TABLE plans DROP COLUMN finally; DROP INDEX plans_deadline; ALTER TABLE plans DROP COLUMN deadline; ALTER TABLE plans DROP COLUMN timeout; DROP TABLE rolled; DROP INDEX queues_weighted; DROP INDEX tasks_subject; ALTER TABLE tasks DROP COLUMN subject; DROP TABLE queue_groups;
	DROP INDEX tasks_ready; CREATE INDEX tasks_ready ON tasks (lane, queue, prio, id) WHERE status = -2; ALTER TABLE plans DROP COLUMN priority;
	ALTER TABLE queues DROP COLUMN spent; DROP INDEX plans_unended; ALTER TABLE plans DROP COLUMN overlap; DROP TABLE schedules; ALTER TABLE queues DROP COLUMN settings; ALTER TABLE queues ADD COLUMN on_lost TEXT NOT NULL DEFAULT '';
	ALTER TABLE queues ADD COLUMN secrets TEXT NOT NULL DEFAULT ''; ALTER TABLE queues ADD COLUMN keep TEXT NOT NULL DEFAULT ''`

// TestNewDatabasesAreWhatTheStepsMake compares what a new database is made of with what the steps make of the
// oldest one, in the order in which it was made: the planner prefers the younger one of two like indexes.
func TestNewDatabasesAreWhatTheStepsMake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	unpack(t, filepath.Join("testdata", fmt.Sprintf("schema%d.db.gz", oldest)), path)
	s := openAt(t, path, Options{})
	defer s.Close()
	var made strings.Builder
	for r := s.w.query("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid"); r.next(); {
		fmt.Fprintf(&made, "%s;\n", r.text(0))
	}
	if err := s.w.clear(); err != nil {
		t.Fatal(err)
	}
	want := made.String() + "INSERT INTO meta VALUES ('task', 0);\n"
	if *update {
		present = want
		if err := os.WriteFile("present.sql", []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if present != want {
		t.Errorf("a new database has\n%s\nbut the steps make\n%s\n(go test -run Databases -update writes present.sql)", present, want)
	}
}

// The kept databases hold a plan that waits for a node: older ones must go on where they stopped. After a change of the schema, run
// this test and the one before with -update, and keep the file that it writes beside the older ones.
func TestKeptDatabasesAreMigratedAndGoOn(t *testing.T) {
	kept := filepath.Join("testdata", fmt.Sprintf("schema%d.db.gz", schema))
	if *update {
		writeKept(t, kept)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "schema*.db.gz"))
	if err != nil || len(files) != schema-oldest+1 {
		t.Fatalf("there are kept databases %v (%v), want one of each schema from %d to %d", files, err, oldest, schema)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sluice.db")
			unpack(t, file, path)
			s := openAt(t, path, Options{})
			defer s.Close()
			if got := s.version(); got != schema {
				t.Errorf("the schema is %d, want %d", got, schema)
			}
			plans, err := s.Plans(t.Context(), store.PlanQuery{Name: "kept"})
			if err != nil || len(plans) != 1 {
				t.Fatalf("plans: %v, %v; want one", plans, err)
			}
			i := register(t, s, "later")
			for range 2 {
				for _, c := range turn(t, s, protocol.Turn{Instance: i, Slots: 5, Start: true}).Claimed {
					turn(t, s, protocol.Turn{Instance: i, Ended: []protocol.Ending{{Claim: c.Claim, Status: plan.Succeeded, Output: []byte(`"b"`)}}})
				}
			}
			p, err := s.Plan(t.Context(), plans[0].ID)
			if err != nil || p.State != plan.PlanSucceeded || p.Counts.Succeeded != 3 {
				t.Errorf("the plan is %v with %+v (%v), want succeeded", p.State, p.Counts, err)
			}
			if p.Size != 3 {
				t.Errorf("the plan was submitted with %d tasks, want 3", p.Size)
			}
			last := named(t, s, p.ID, "c")
			if want := `{"needs":{"a":{"is":"a"},"b":"b"},"args":[{"is":"a"},"b"]}`; string(last.Params) != want {
				t.Errorf("c ran with %s, want %s", last.Params, want)
			}
			if _, err := s.Retry(t.Context(), p.ID, rules.Ask{Tasks: []plan.TaskID{last.ID}, Downstream: true}); err != nil {
				t.Fatal(err)
			}
			for _, c := range turn(t, s, protocol.Turn{Instance: i, Slots: 1, Start: true}).Claimed {
				turn(t, s, protocol.Turn{Instance: i, Ended: []protocol.Ending{{Claim: c.Claim, Status: plan.Succeeded}}})
			}
			if again, err := s.Plan(t.Context(), p.ID); err != nil || again.State != plan.PlanSucceeded || !p.Retried.IsZero() || again.Retried.Before(p.Ended) {
				t.Errorf("the plan that ended at %v was retried at %v, and then at %v: it is %v, %v", p.Ended, p.Retried, again.Retried, again.State, err)
			}
			if more, err := s.DeletePlan(t.Context(), p.ID, 0); err != nil || more {
				t.Fatalf("delete the plan: more %v, %v", more, err)
			}
			again, err := s.CreatePlan(t.Context(), plan.Plan{Name: "kept"})
			if err != nil || again.Run != 2 {
				t.Errorf("the next run is %d (%v), want 2", again.Run, err)
			}
		})
	}
}

// writeKept makes a database in which a has run, b is queued and c waits for both.
func writeKept(t *testing.T, file string) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s := openAt(t, path, Options{})
	p := newPlan(t, s, "kept", task{name: "a"}, task{name: "b"}, task{name: "c", needs: []string{"a", "b"}})
	i := register(t, s, "earlier")
	claims := turn(t, s, protocol.Turn{Instance: i, Slots: 1}).Claimed
	turn(t, s, protocol.Turn{Instance: i, Ended: []protocol.Ending{{Claim: claims[0].Claim, Status: plan.Succeeded, Output: []byte(`{"is":"a"}`)}}})
	if got := named(t, s, p, "b").Status; got != plan.Queued {
		t.Fatalf("b is %v", got)
	}
	if err := s.Leave(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s) // which takes the write-ahead log into the file
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(out)
	if _, err := io.Copy(z, in); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(z.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
}

func unpack(t *testing.T, file, path string) {
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Up to schema 20 counts could be wrong, until a sweep found them.
func TestOlderDatabasesAreCountedAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s := openAt(t, path, Options{})
	i := register(t, s, "n1")
	fails := func(names ...string) func(protocol.ClaimedTask) protocol.Ending {
		return func(c protocol.ClaimedTask) protocol.Ending {
			if slices.Contains(names, c.Name) {
				return protocol.Ending{Status: plan.Failed}
			}
			return protocol.Ending{Status: plan.Succeeded}
		}
	}
	three := plan.TaskSpec{Foreach: &plan.Foreach{List: []byte(`[1, 2, 3]`)}}
	ended := newPlan(t, s, "ended", task{name: "copy", spec: three}, task{name: "none", spec: plan.TaskSpec{Foreach: &plan.Foreach{List: []byte(`[]`)}}},
		task{name: "alone"}, task{name: "may", spec: plan.TaskSpec{ContinueOnError: true}}, task{name: "after", needs: []string{"copy"}})
	runAll(t, s, i, fails("copy[1]", "copy[2]", "alone", "may"))
	running := newPlan(t, s, "running", task{name: "copy", spec: three})
	turn(t, s, protocol.Turn{Instance: i})
	plain := newPlan(t, s, "plain", task{name: "alone"})
	want := map[plan.PlanID]plan.Counts{
		ended:   {Succeeded: 2, Failed: 3, Allowed: 1, Skipped: 1, Gathered: 1},
		running: {Queued: 3, Gathering: 1},
		plain:   {Queued: 1},
	}
	same := func(when string) {
		t.Helper()
		for id, want := range want {
			if got, err := s.Plan(t.Context(), id); err != nil || got.Counts != want {
				t.Errorf("%s, %s has %+v (%v), want %+v", when, got.Title(), got.Counts, err, want)
			}
		}
	}
	same("written by this version")
	s.w.script(`UPDATE plans SET failed = 5, allowed = 4, gathering = 1, gathered = 0 WHERE name = 'ended'; UPDATE plans SET held = 1, gathering = 0 WHERE name = 'running';
		UPDATE queues SET queued = 7; CREATE INDEX tasks_later ON tasks (n) WHERE status = -4 AND gate <> 1 AND not_before > 0; CREATE INDEX plans_open ON plans (n);
		CREATE INDEX plans_abandoned ON plans (n); CREATE INDEX tasks_apart ON tasks (n); ` + asSchema21 + `; PRAGMA user_version = 20`) // as it was before
	if err := s.w.clear(); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	s = openAt(t, path, Options{})
	defer s.Close()
	same("migrated")
	runAll(t, s, register(t, s, "n2"), fails())
	want[running], want[plain] = plan.Counts{Succeeded: 3, Gathered: 1}, plan.Counts{Succeeded: 1}
	same("and run to the end")
}

// Versions before schema 23 swept retries that had died before they were decided.
func TestAnUndecidedRetryOfAnOlderVersionIsForgotten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s := openAt(t, path, Options{})
	p := newPlan(t, s, "nightly", task{name: "a"})
	q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "apart", Plugin: "demo", Unlimited: true})
	if err == nil {
		err = s.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "alone", Queue: q.ID}})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.w.script(`INSERT INTO retries (plan, at, closing) SELECT n, 0, '' FROM plans UNION ALL SELECT 0, 0, '' UNION ALL SELECT 12345, 0, '';
		INSERT INTO retried (retry, task, how) SELECT r.n, t.n, 0 FROM retries AS r, tasks AS t WHERE r.plan = t.plan;
		UPDATE plans SET retry = (SELECT n FROM retries WHERE plan = plans.n); DELETE FROM jobs; ` + asSchema21 + `; PRAGMA user_version = 21`)
	if err := s.w.clear(); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	s = openAt(t, path, Options{})
	defer closeStore(t, s)
	ran := runAll(t, s, register(t, s, "n1"), func(protocol.ClaimedTask) protocol.Ending { return protocol.Ending{Status: plan.Succeeded} })
	if got, err := s.Plan(t.Context(), p); err != nil || got.State != plan.PlanSucceeded || len(ran) != 2 {
		t.Errorf("the plan is %v (%v), and %v ran; want it succeeded, and both tasks", got.State, err, ran)
	}
	if n := left(t, s); n["tasks of retries"] != 0 || n["plans with a retry"] != 0 || n["jobs"] != 0 {
		t.Errorf("there are %v left", n)
	}
}

func TestAFullDiskIsSaidAndChangesNothing(t *testing.T) {
	s := openTest(t, Options{})
	defer s.Close()
	p := newPlan(t, s, "nightly")
	// A limit of pages is to SQLite what a full disk is.
	s.w.script("PRAGMA max_page_count = 1")
	_, tasks := compile(t, s, "more", manyTasks(insertAtOnce)...) // more than the pages have room that a migration freed
	err := s.AddTasks(t.Context(), p, tasks)
	if err == nil {
		err = s.AddTasks(t.Context(), plan.PlanID{}, tasks)
	}
	if !errors.Is(err, plan.ErrFull) || !strings.Contains(err.Error(), "no room on its disk") || !strings.Contains(err.Error(), s.path) {
		t.Errorf("got error %v, want one that is %q, and says so of the file", err, plan.ErrFull)
	}
	if got, err := s.Tasks(t.Context(), store.TaskQuery{}); err != nil || len(got) != 0 {
		t.Errorf("there are %d tasks (%v), want none", len(got), err)
	}
	s.w.script("PRAGMA max_page_count = 1000000")
	if err := s.AddTasks(t.Context(), plan.PlanID{}, tasks); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

func TestNothingIsWrittenWhenNothingIsToDo(t *testing.T) {
	writes := 0
	s := openTest(t, Options{Hook: func(written bool) error {
		if written {
			writes++
		}
		return nil
	}})
	defer s.Close()
	i := register(t, s, "idle")
	if _, err := s.Sweep(t.Context(), protocol.Sweep{Instance: i}); err != nil { // it notes when an audit was made
		t.Fatal(err)
	}
	writes = 0
	for range 3 {
		turn(t, s, protocol.Turn{Instance: i, Slots: 10})
		if _, err := s.Sweep(t.Context(), protocol.Sweep{Instance: i}); err != nil {
			t.Fatal(err)
		}
		if gone, err := s.Expire(t.Context(), 10); err != nil || gone.More {
			t.Fatalf("expire: %+v, %v", gone, err)
		}
	}
	if writes != 0 {
		t.Errorf("idle turns, sweeps and looks for old plans made %d writes", writes)
	}
	if _, err := s.Beat(t.Context(), protocol.Beat{Instance: i}); err != nil || writes != 1 {
		t.Errorf("a beat made %d writes (%v), want 1", writes, err)
	}
}

func TestTheFeedReachesBackAnHour(t *testing.T) {
	now := time.Now()
	s := openTest(t, Options{Now: func() time.Time { return now }})
	defer s.Close()
	i := register(t, s, "n1")
	newPlan(t, s, "old", task{name: "a"})
	now = now.Add(50 * time.Minute)
	newPlan(t, s, "new", task{name: "b"})
	names := func() string {
		t.Helper()
		var out []string
		changes, _, err := s.Changes(t.Context(), "", 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			out = append(out, c.Name)
		}
		return strings.Join(out, " ")
	}
	if _, err := s.Sweep(t.Context(), protocol.Sweep{Instance: i}); err != nil {
		t.Fatal(err)
	}
	if got := names(); !strings.Contains(got, "old") || !strings.Contains(got, "new") {
		t.Errorf("after 50 minutes the feed has %q, want both plans", got)
	}
	now = now.Add(11 * time.Minute)
	if _, err := s.Sweep(t.Context(), protocol.Sweep{Instance: i}); err != nil {
		t.Fatal(err)
	}
	if got := names(); strings.Contains(got, "old") || !strings.Contains(got, "new") {
		t.Errorf("after 61 minutes the feed has %q, want the new plan only", got)
	}
}
