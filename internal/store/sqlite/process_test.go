package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// The test binary as another process runs tasks of a store until the plan ends, and prints the name
// of each before it ends it.
const (
	workerStore = "SLUICE_TEST_WORKER_STORE"
	workerPlan  = "SLUICE_TEST_WORKER_PLAN"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(workerStore); path != "" {
		if err := work(path, os.Getenv(workerPlan)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func work(path, planID string) error {
	ctx := context.Background()
	s, err := Open(ctx, path, Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	id, err := plan.ParseID(planID)
	if err != nil {
		return err
	}
	i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: plan.NodeName(fmt.Sprint("worker-", os.Getpid()))}
	if err := s.Register(ctx, i); err != nil {
		return err
	}
	fmt.Println("instance", i.ID)
	turn := protocol.Turn{Instance: i.ID, Slots: 8, Plugins: []string{"demo"}, Start: true}
	for {
		did, err := s.Turn(ctx, turn)
		if err != nil {
			return err
		}
		if len(did.Lost) > 0 {
			return fmt.Errorf("%d endings were refused", len(did.Lost))
		}
		turn.Ended = nil
		for _, c := range did.Claimed {
			fmt.Println("ran", c.Name)
			turn.Ended = append(turn.Ended, protocol.Ending{Claim: c.Claim, Status: plan.Succeeded, Output: []byte(`"` + c.Name + `"`)})
		}
		if len(turn.Ended) > 0 {
			continue
		}
		p, err := s.Plan(ctx, plan.PlanID{ID: id})
		if err != nil || p.State.Ended() {
			return err
		}
		time.Sleep(time.Millisecond) // another process has what is left; the test has a deadline
	}
}

// worker is another process.
type worker struct {
	cmd      *exec.Cmd
	instance plan.InstanceID
	ran      chan string
}

func startWorker(t *testing.T, path string, p plan.PlanID) *worker {
	t.Helper()
	w := &worker{cmd: exec.Command(os.Args[0], "-test.run=^$"), ran: make(chan string, 10_000)}
	w.cmd.Env = append(os.Environ(), workerStore+"="+path, workerPlan+"="+p.String())
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.cmd.Process.Kill() }) // it has ended, unless the test failed
	lines := bufio.NewScanner(out)
	var id string
	if !lines.Scan() {
		t.Fatal("a worker said nothing")
	}
	if _, err := fmt.Sscanf(lines.Text(), "instance %s", &id); err != nil {
		t.Fatalf("a worker said %q: %v", lines.Text(), err)
	}
	if w.instance.ID, err = plan.ParseID(id); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.ran)
		for lines.Scan() {
			var name string
			if _, err := fmt.Sscanf(lines.Text(), "ran %s", &name); err == nil {
				w.ran <- name
			}
		}
	}()
	return w
}

// layers are tasks of which each needs three of the layer before.
func layers(count, width int) (tasks []task) {
	for l := range count {
		for k := range width {
			x := task{name: fmt.Sprintf("t-%d-%d", l, k)}
			for d := 0; l > 0 && d < 3; d++ {
				x.needs = append(x.needs, fmt.Sprintf("t-%d-%d", l-1, (k+d*7)%width))
			}
			tasks = append(tasks, x)
		}
	}
	return tasks
}

func TestProcessesShareAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s := openAt(t, path, Options{})
	defer s.Close()
	p := newPlan(t, s, "shared", layers(10, 60)...)
	var workers []*worker
	for range 3 {
		workers = append(workers, startWorker(t, path, p))
	}
	times := map[string]int{}
	for _, w := range workers {
		for name := range w.ran {
			times[name]++
		}
		if err := w.cmd.Wait(); err != nil {
			t.Errorf("a worker: %v", err)
		}
	}
	if len(times) != 600 {
		t.Errorf("%d tasks ran, want 600", len(times))
	}
	for name, n := range times {
		if n != 1 {
			t.Errorf("task %s ran %d times", name, n)
		}
	}
	if got, err := s.Plan(t.Context(), p); err != nil || got.State != plan.PlanSucceeded || got.Counts.Succeeded != 600 {
		t.Errorf("the plan is %v with %+v (%v), want succeeded", got.State, got.Counts, err)
	}
}

func TestAPlanEndsWhenProcessesAreKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s := openAt(t, path, Options{})
	defer s.Close()
	p := newPlan(t, s, "killed", layers(10, 60)...)
	ran := map[string]bool{}
	for range 5 {
		w := startWorker(t, path, p)
		before := len(ran) // whatever a worker had run before its death, the next one gets behind what that held
		for name := range w.ran {
			if ran[name] = true; len(ran) >= before+80 {
				break
			}
		}
		if err := w.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		for name := range w.ran {
			ran[name] = true
		}
		_ = w.cmd.Wait() // killed
		if _, err := s.Rescue(t.Context(), w.instance, -1); err != nil {
			t.Fatal(err)
		}
	}
	w := startWorker(t, path, p)
	for name := range w.ran {
		ran[name] = true
	}
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("the last worker: %v", err)
	}
	if got, err := s.Plan(t.Context(), p); err != nil || got.State != plan.PlanSucceeded || len(ran) != 600 {
		t.Errorf("the plan is %v with %+v (%v) and %d tasks ran, want succeeded and 600", got.State, got.Counts, err, len(ran))
	}
	if again, err := s.Tasks(t.Context(), store.TaskQuery{Plan: p, Limit: 1000}); err != nil || again[len(again)-1].Status != plan.Succeeded {
		t.Errorf("the last task is not there as it ended: %v", err)
	}
}
