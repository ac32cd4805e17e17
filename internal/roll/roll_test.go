package roll_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/mongotest"
	"github.com/seed-1177d267/sluice/internal/roll"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb"
	"github.com/seed-1177d267/sluice/internal/store/sqlite"
	"github.com/seed-1177d267/sluice/plan"
	sluicehttp "github.com/seed-1177d267/sluice/plugins/http"
)

func TestMain(m *testing.M) { os.Exit(mongotest.Run(m)) }

// A world is a store, a node that runs tasks, and a receiver of finished ones.
type world struct {
	*testing.T
	path string          // of SQLite
	db   *mongo.Database // of MongoDB; nil: it is SQLite
	uri  string
	now  time.Time
	mu   sync.Mutex               // of the hook, which several goroutines call
	hook func(written bool) error // nil: no write fails
	st   roll.Store
	node plan.InstanceID
	r    *roll.Roller
	log  bytes.Buffer
	to   *receiver
}

// onStores runs a test on SQLite and on MongoDB.
func onStores(t *testing.T, test func(*world)) {
	for _, on := range []string{"sqlite", "mongodb"} {
		t.Run(on, func(t *testing.T) {
			w := &world{T: t, path: filepath.Join(t.TempDir(), "sluice.db"), now: time.Date(2027, 1, 2, 10, 0, 0, 0, time.UTC), to: newReceiver(t)}
			if on == "mongodb" {
				w.uri, w.db = mongotest.Database(t)
			}
			w.open()
			t.Cleanup(func() { _ = w.st.Close() }) // a hook may have broken it
			w.no(w.st.PutGroup(w.Context(), plan.Group{}, plan.Group{Name: "acme"}))
			w.group(w.to.url+"/ok", w.to.url+"/bad")
			hour := plan.Duration(time.Hour)
			q := plan.Queue{Name: "republish", Plugin: "http", Unlimited: true, QueueSettings: plan.QueueSettings{
				Group: "solution", Keep: plan.Keep{Succeeded: hour, Failed: 2 * hour}, Secrets: []string{"token"},
			}}
			_, err := w.st.CreateQueue(w.Context(), q)
			w.no(err)
			test(w)
		})
	}
}

// group sets the URIs of the group of the queue.
func (w *world) group(success, deadLetter string) {
	w.Helper()
	groups, err := w.st.Groups(w.Context())
	w.no(err)
	var was plan.Group
	for _, g := range groups {
		if g.Name == "solution" {
			was = g
		}
	}
	g := plan.Group{Name: "solution", GroupSettings: plan.GroupSettings{Parent: "acme", SuccessURI: success, DeadLetterURI: deadLetter}}
	w.no(w.st.PutGroup(w.Context(), was, g))
}

// open opens the store as another process would, which takes a dead one's work over.
func (w *world) open() {
	w.Helper()
	if w.st != nil {
		_ = w.st.Close()
	}
	hook := func(written bool) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.hook != nil {
			return w.hook(written)
		}
		return nil
	}
	var err error
	if w.db != nil {
		w.st, err = mongodb.Open(w.Context(), w.uri, mongodb.Options{Hook: hook})
	} else {
		w.st, err = sqlite.Open(w.Context(), w.path, sqlite.Options{Hook: hook, Now: func() time.Time { return w.now }})
	}
	w.no(err)
	nodes, err := w.st.Instances(w.Context())
	w.no(err)
	for _, i := range nodes {
		_, err := w.st.Rescue(w.Context(), i.ID, -1)
		w.no(err)
	}
	w.node = w.register("n")
	p := sluicehttp.New(sluicehttp.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	w.Cleanup(func() { p.Close() })
	w.log.Reset()
	w.r = roll.New(w.st, p, slog.New(slog.NewTextHandler(&w.log, nil)))
}

// failing sets the hook.
func (w *world) failing(hook func(written bool) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hook = hook
}

func (w *world) register(name plan.NodeName) plan.InstanceID {
	w.Helper()
	id := plan.InstanceID{ID: plan.NewID(time.Now())}
	w.no(w.st.Register(w.Context(), plan.Instance{ID: id, Node: name, Lease: time.Minute, Threads: 1000, Plugins: []string{"http"}}))
	return id
}

func (w *world) no(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	if w.db != nil {
		mongotest.Pass(w, w.db, d)
		return
	}
	w.now = w.now.Add(d)
}

// ended runs tasks of these names; bad ones fail.
func (w *world) ended(names ...string) (ids []plan.TaskID) {
	w.Helper()
	queues, err := w.st.Queues(w.Context())
	w.no(err)
	var tasks []plan.Task
	for _, name := range names {
		t := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: name, Queue: queues[0].ID, Params: json.RawMessage(`{"url":"http://x/","song":7,"token":"hunter22"}`)}
		t.Subject, t.Secrets = "song/7", []string{"token"}
		tasks, ids = append(tasks, t), append(ids, t.ID)
	}
	w.no(w.st.AddTasks(w.Context(), plan.PlanID{}, tasks))
	did, err := w.st.Turn(w.Context(), protocol.Turn{Instance: w.node, Slots: len(names), Start: true, Plugins: []string{"http"}})
	w.no(err)
	var ended []protocol.Ending
	for _, c := range did.Claimed {
		e := protocol.Ending{Claim: c.Claim, Status: plan.Succeeded, Output: json.RawMessage(`{"status":200}`)}
		if strings.HasPrefix(c.Name, "bad") {
			e = protocol.Ending{Claim: c.Claim, Status: plan.Failed, Reason: plan.ReasonError, Detail: "404 Not Found"}
		}
		e.Log = []plan.LogEntry{{At: time.Unix(9, 0), Attempt: 1, Stream: plan.System, Text: "sent hunter22\n"}}
		ended = append(ended, e)
	}
	did, err = w.st.Turn(w.Context(), protocol.Turn{Instance: w.node, Ended: ended})
	w.no(err)
	if len(ended) != len(names) || len(did.Lost) > 0 {
		w.Fatalf("%d of %d tasks ran, and %d were lost", len(ended), len(names), len(did.Lost))
	}
	return ids
}

// there returns how many tasks the store has.
func (w *world) there() int {
	w.Helper()
	all, err := store.AllTasks(w.Context(), w.st, store.TaskQuery{})
	w.no(err)
	return len(all)
}

// roll has the node hand over.
func (w *world) roll() (next time.Duration) {
	w.Helper()
	held, next, err := w.r.Roll(w.Context(), w.node)
	w.no(err)
	if !held {
		w.Fatal("the node does not hold the role")
	}
	return next
}

// A receiver keeps what it is sent, and dies, or refuses, as it is told.
type receiver struct {
	t   *testing.T
	url string

	mu    sync.Mutex
	dies  func(w http.ResponseWriter, r *http.Request) bool // instead of an answer; it has not read the body
	got   map[string][]string                               // ids of the tasks, by batch, as they were received first
	in    map[string]string                                 // the batch in which a task was received
	kinds map[string]string                                 // the kind of each batch
	last  string                                            // body
	times int
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{t: t, got: map[string][]string{}, in: map[string]string{}, kinds: map[string]string{}}
	s := httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(s.Close)
	r.url = s.URL
	return r
}

// dying sets how the receiver dies; nil: it does not.
func (r *receiver) dying(dies func(w http.ResponseWriter, r *http.Request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dies = dies
}

// asked returns how many requests there were.
func (r *receiver) asked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.times
}

// batch returns the last body, and the kind of the batch that a task is in.
func (r *receiver) batch(of plan.TaskID) (body, kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last, r.kinds[r.in[of.String()]]
}

// sent is what a receiver reads of a batch.
type sent struct {
	Batch, Group, Kind string
	Activities         []struct{ ID string }
}

func (r *receiver) serve(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times++
	if r.dies != nil && r.dies(w, req) {
		return
	}
	body, err := io.ReadAll(req.Body)
	if err == nil {
		err = r.keep(req, body)
	}
	if err != nil {
		r.t.Error(err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// keep keeps a batch. It wants each task in one batch alone, and the same tasks in a batch each time.
func (r *receiver) keep(req *http.Request, body []byte) error {
	var b sent
	if err := json.Unmarshal(body, &b); err != nil {
		return err
	}
	if key := req.Header.Get("Idempotency-Key"); key != b.Batch {
		return fmt.Errorf("batch %s has the key %s", b.Batch, key)
	}
	var ids []string
	for _, a := range b.Activities {
		if first, twice := r.in[a.ID]; twice && first != b.Batch {
			return fmt.Errorf("task %s was received in batch %s, and then in %s", a.ID, first, b.Batch)
		}
		r.in[a.ID], ids = b.Batch, append(ids, a.ID)
	}
	slices.Sort(ids)
	if first, twice := r.got[b.Batch]; twice && !slices.Equal(first, ids) {
		return fmt.Errorf("batch %s was received with %v, and then with %v", b.Batch, first, ids)
	}
	r.got[b.Batch], r.kinds[b.Batch], r.last = ids, req.URL.Path+" "+b.Group+" "+b.Kind, string(body)
	return nil
}

// cut ends the connection of a request without an answer.
func cut(w http.ResponseWriter) bool {
	panic(http.ErrAbortHandler)
}

// received wants exactly these tasks received in so many batches.
func (w *world) received(ids []plan.TaskID, batches int) {
	w.Helper()
	w.to.mu.Lock()
	defer w.to.mu.Unlock()
	for _, id := range ids {
		if w.to.in[id.String()] == "" {
			w.Errorf("task %s was not received", id)
		}
	}
	if len(w.to.in) != len(ids) || len(w.to.got) != batches {
		w.Errorf("%d tasks were received in %d batches, want %d in %d", len(w.to.in), len(w.to.got), len(ids), batches)
	}
}

func TestFinishedTasksAreHandedOverWithAllThatIsKnownOfThem(t *testing.T) {
	onStores(t, func(w *world) {
		good := w.ended("good")
		if next := w.roll(); next != time.Minute || w.to.asked() > 0 {
			t.Errorf("%d batches came before their time, and the next look is in %v", w.to.asked(), next)
		}
		w.pass(90 * time.Minute)
		bad := w.ended("bad")
		w.roll()
		w.received(good, 1)
		body, okay := w.to.batch(good[0])
		for _, want := range []string{
			`"group":"solution","kind":"success","activities":[{"id":"` + good[0].String() + `","name":"good"`, `"queue":"republish"`, `"state":"succeeded"`, `"subject":"song/7"`,
			`"params":{"song":7,"token":"***","url":"http://x/"}`, `"output":{"status":200}`, `"ended":"`, `"log_details":[{"at":"1970-01-01T00:00:09Z","attempt":1,"stream":"system","text":"sent ***\n"}]`,
		} {
			if !strings.Contains(compactParams(body), want) {
				t.Errorf("the batch does not have %s: %s", want, body)
			}
		}
		w.pass(3 * time.Hour)
		w.roll()
		w.received(append(good, bad...), 2)
		body, dead := w.to.batch(bad[0])
		if okay != "/ok solution success" || dead != "/bad solution dead-letter" {
			t.Errorf("the batches came as %s, %s", okay, dead)
		}
		if !strings.Contains(body, `"detail":"404 Not Found"`) || w.there() != 0 {
			t.Errorf("the dead letter is %s, and %d tasks are left", body, w.there())
		}
		if said := w.log.String(); strings.Count(said, "handed over finished tasks") != 2 || !strings.Contains(said, "group=solution kind=dead-letter batches=1 tasks=1") {
			t.Errorf("the log is %s", said)
		}
	})
}

// compactParams orders the params of the one task, which a store may keep in another order.
func compactParams(body string) string {
	var p struct {
		Activities []struct{ Params json.RawMessage }
	}
	if json.Unmarshal([]byte(body), &p) != nil || len(p.Activities) != 1 {
		return body
	}
	var params map[string]any
	if json.Unmarshal(p.Activities[0].Params, &params) != nil {
		return body
	}
	ordered, err := json.Marshal(params)
	if err != nil {
		return body
	}
	return strings.Replace(body, string(p.Activities[0].Params), string(ordered), 1)
}

func TestAReceiverThatDiesGetsTheSameBatchAgain(t *testing.T) {
	deaths := map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"in the middle of the batch": func(w http.ResponseWriter, r *http.Request) bool {
			_, _ = io.ReadFull(r.Body, make([]byte, 100))
			return cut(w)
		},
		"before its answer": nil,
		"after its answer": func(w http.ResponseWriter, r *http.Request) bool {
			return false // it keeps the batch, and answers
		},
	}
	onStores(t, func(w *world) {
		var all []plan.TaskID
		batches := 0
		for name, death := range deaths {
			ids := w.ended("a", "b", "c")
			all, batches = append(all, ids...), batches+1
			w.pass(90 * time.Minute)
			w.to.dying(death)
			if name == "before its answer" {
				w.to.dying(func(rw http.ResponseWriter, r *http.Request) bool {
					if body, err := io.ReadAll(r.Body); err != nil || w.to.keep(r, body) != nil {
						t.Error("the batch was not received")
					}
					return cut(rw)
				})
			}
			if _, err := w.r.Group(t.Context(), "solution"); (err != nil) != (name != "after its answer") {
				t.Errorf("it dies %s: %v", name, err)
			}
			want := 3
			if name == "after its answer" {
				want = 0
			}
			if n := w.there(); n != want {
				t.Errorf("it dies %s: %d tasks are left, want %d", name, n, want)
			}
			if want > 0 {
				_, err := w.st.Retry(t.Context(), plan.PlanID{}, rules.Ask{Tasks: ids[:1], Downstream: true})
				if !errors.Is(err, plan.ErrConflict) || !strings.Contains(err.Error(), "is being handed over to the receiver of its group") {
					t.Errorf("it dies %s, and a task is retried: %v", name, err)
				}
			}
			w.to.dying(nil)
			handed, err := w.r.Group(t.Context(), "solution")
			w.no(err)
			if got := handed[rules.RollSuccess].Tasks; got != want || w.there() != 0 {
				t.Errorf("it died %s: then %d tasks are handed over, and %d are left", name, got, w.there())
			}
		}
		w.received(all, batches)
	})
}

var errDead = errors.New("the node is dead")

func TestANodeThatDiesAtAnyOfItsWritesLosesNothing(t *testing.T) {
	onStores(t, func(w *world) {
		var all []plan.TaskID
		rounds := 0
		for at, met := 1, true; met; at++ {
			rounds++
			all = append(all, w.ended("a", "b", "bad")...)
			w.pass(3 * time.Hour)
			n, dead := 0, false
			w.failing(func(written bool) error { // the process is dead from this write on
				if !written {
					n++
				}
				dead = dead || n == at
				if dead {
					return errDead
				}
				return nil
			})
			_, _, err := w.r.Roll(t.Context(), w.node)
			w.failing(nil)
			if met = dead; met != errors.Is(err, errDead) {
				t.Errorf("it died at write %d: %v", at, err)
			}
			w.open() // another node
			w.roll()
			w.pass(rules.AuditEvery)
			_, err = w.st.Sweep(t.Context(), protocol.Sweep{Instance: w.node})
			w.no(err)
			w.roll()
			for more := true; more; {
				gone, err := w.st.Expire(t.Context(), 100)
				w.no(err)
				more = gone.More
			}
			if left := w.there(); left > 0 {
				t.Errorf("it died at write %d: %d tasks are left", at, left)
			}
		}
		if rounds < 5 {
			t.Errorf("a hand-over has %d writes", rounds-1)
		}
		w.to.mu.Lock()
		batches := len(w.to.got)
		w.to.mu.Unlock()
		w.received(all, batches)
	})
}

func TestEachReceiverThatRefusesIsNamed(t *testing.T) {
	onStores(t, func(w *world) {
		w.ended("a", "bad")
		w.pass(10_000 * time.Hour)
		w.to.dying(func(rw http.ResponseWriter, _ *http.Request) bool {
			http.Error(rw, "full", http.StatusInsufficientStorage)
			return true
		})
		_, err := w.r.Group(t.Context(), "solution")
		for _, kind := range rules.RollKinds {
			if err == nil || !strings.Contains(err.Error(), "the receiver of "+string(kind)+" has not taken") {
				t.Errorf("%v; it lacks %s", err, kind)
			}
		}
	})
}

func TestAReceiverThatRefusesIsAskedAgainAndNothingIsDeletedMeanwhile(t *testing.T) {
	onStores(t, func(w *world) {
		ids := w.ended("a")
		w.pass(90 * time.Minute)
		w.to.dying(func(rw http.ResponseWriter, _ *http.Request) bool {
			rw.Header().Set("Retry-After", "30")
			http.Error(rw, "full", http.StatusInsufficientStorage)
			return true
		})
		if next := w.roll(); next < 25*time.Second || next > 30*time.Second {
			t.Errorf("the next look is in %v, want 30 s", next)
		}
		w.roll() // it is left alone
		if said := w.log.String(); w.to.asked() != 1 || strings.Count(said, "level=WARN") != 1 || !strings.Contains(said, "full") || !strings.Contains(said, "again_in=30s") {
			t.Errorf("the receiver was asked %d times, and the log is %s", w.to.asked(), said)
		}
		if _, err := w.r.Group(t.Context(), "solution"); err == nil || w.to.asked() != 2 || !strings.Contains(err.Error(), "has not taken a batch of 1 tasks: full") {
			t.Errorf("asked for now, %d requests, %v", w.to.asked(), err)
		}
		w.pass(10_000 * time.Hour)
		gone, err := w.st.Expire(t.Context(), 100)
		if w.no(err); gone.Tasks > 0 || w.there() != 1 {
			t.Errorf("%d tasks were deleted", gone.Tasks)
		}

		// Without a receiver the task is as before.
		w.group("", w.to.url+"/bad")
		w.roll()
		_, err = w.st.Retry(t.Context(), plan.PlanID{}, rules.Ask{Tasks: ids, Downstream: true})
		w.no(err)
	})
}

func TestOneNodeHandsOverAndOnlyWhereThereIsAReceiver(t *testing.T) {
	onStores(t, func(w *world) {
		other := w.register("m")
		w.group("", "")
		if held, next, err := w.r.Roll(t.Context(), other); held || next != time.Minute || err != nil {
			t.Errorf("without a receiver: %v, %v, %v", held, next, err)
		}
		w.group(w.to.url, "")
		w.roll()
		if held, next, err := w.r.Roll(t.Context(), other); held || next != time.Minute || err != nil {
			t.Errorf("beside the node that hands over: %v, %v, %v", held, next, err)
		}
		w.no(w.st.Leave(t.Context(), w.node))
		if held, _, err := w.r.Roll(t.Context(), other); !held || err != nil {
			t.Errorf("after it: %v, %v", held, err)
		}
	})
}

func TestABatchHasAsManyTasksAsItsLimitsAllow(t *testing.T) {
	onStores(t, func(w *world) {
		queues, err := w.st.Queues(t.Context())
		w.no(err)
		large := json.RawMessage(`{"text":"` + strings.Repeat("x", 900_000) + `"}`)
		var tasks []plan.Task
		for range 12 {
			tasks = append(tasks, plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "large", Queue: queues[0].ID, Params: large})
		}
		w.no(w.st.AddTasks(t.Context(), plan.PlanID{}, tasks))
		did, err := w.st.Turn(t.Context(), protocol.Turn{Instance: w.node, Slots: 100, Start: true, Plugins: []string{"http"}})
		w.no(err)
		var ended []protocol.Ending
		var ids []plan.TaskID
		for _, c := range did.Claimed {
			ended, ids = append(ended, protocol.Ending{Claim: c.Claim, Status: plan.Succeeded}), append(ids, c.Task)
		}
		_, err = w.st.Turn(t.Context(), protocol.Turn{Instance: w.node, Ended: ended})
		w.no(err)
		var small []string
		for i := range rules.MostRolled + 1 {
			small = append(small, fmt.Sprint("t", i))
		}
		w.pass(time.Second)
		ids = append(ids, w.ended(small...)...)
		w.pass(90 * time.Minute)
		w.roll()
		w.received(ids, 3)
		var sizes []int
		w.to.mu.Lock()
		for _, got := range w.to.got {
			sizes = append(sizes, len(got))
		}
		w.to.mu.Unlock()
		slices.Sort(sizes)
		if got := fmt.Sprint(sizes); got != "[5 9 999]" && got != "[4 9 1000]" {
			t.Errorf("the batches have %s tasks", got)
		}
	})
}

func TestAReceiverThatHangsDoesNotHoldUpAnother(t *testing.T) {
	onStores(t, func(w *world) {
		ids := w.ended("a", "bad")
		w.pass(3 * time.Hour)
		hung, release := make(chan struct{}), make(chan struct{})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		w.no(err)
		defer l.Close()
		go func() {
			if c, err := l.Accept(); err == nil {
				close(hung)
				<-release
				_ = c.Close()
			}
		}()
		w.group("http://"+l.Addr().String()+"/", w.to.url+"/bad")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = w.r.Group(ctx, "solution")
		}()
		<-hung
		for w.there() > 1 { // the other one has its batch, whenever that is
			time.Sleep(5 * time.Millisecond)
		}
		close(release)
		<-ended
		w.received(ids[1:], 1)
	})
}
