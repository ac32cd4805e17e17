package disbatchtest

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// env has the settings of a process that is to be a node.
const env = "DISBATCHTEST_NODE"

// Settings are those of a node that runs as a process of its own.
type Settings struct {
	URI, Database string
	Name          string
	Claims        string
	Nobody        []any
	Queue         string
	Threads       int           // that run at once; its maxthreads
	Work          time.Duration // how long a task takes
	Until         string        // a file that each task waits for, too
	Pause         time.Duration // between the status of a task and its output
	Lost          time.Duration // after that it gives up tasks that it claimed and did not start
	Stuck         bool          // claims and starts nothing, as if its runners could not be started; as a runner: does not begin
	Dir           string        // where tasks have their effects
	Runner        bool          // is no node, but a task runner, by its arguments: it runs one task that some node has claimed
	Dies          string        // as a runner: before it started the task ("claimed"), or after ("running")
}

// Environment is what has a program that begins with Main be the node.
func (s Settings) Environment() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // there is nothing in Settings that JSON has not
	}
	return env + "=" + string(text)
}

// Main runs the node that the environment asks for, until standard input ends, and reports whether there was one. A test program calls it
// first of all.
func Main() bool {
	text := os.Getenv(env)
	if text == "" {
		return false
	}
	var s Settings
	err := json.Unmarshal([]byte(text), &s)
	switch {
	case err == nil && s.Runner:
		err = s.runOne(context.Background(), os.Args[1:])
	case err == nil:
		ctx, stop := context.WithCancel(context.Background())
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
		err = s.run(ctx)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", s.Name, err)
		os.Exit(1)
	}
	return true
}

// run is the node's loop: it registers, gives up lost tasks, and fills the queue's threads. It lets
// its running tasks end.
func (s *Settings) run(ctx context.Context) error {
	db, err := Open(s.URI, s.Database)
	if err != nil {
		return err
	}
	n := &Node{Database: db, Name: s.Name, Claims: s.Claims}
	for _, v := range s.Nobody {
		if f, ok := v.(float64); ok {
			v = int32(f)
		}
		n.Nobody = append(n.Nobody, v)
	}
	whole := context.WithoutCancel(ctx) // what was begun is ended
	if err := n.EnsureIndexes(whole); err != nil {
		return err
	}
	var runners sync.WaitGroup
	defer runners.Wait()
	failed := make(chan error, 1)
	slots := make(chan struct{}, s.Threads)
	for ctx.Err() == nil {
		if err := n.Register(whole); err != nil {
			return err
		}
		if _, err := n.Orphan(whole, s.Lost); err != nil {
			return err
		}
		q, err := n.Queue(whole, s.Queue) // it is read each time: its threads may change
		if err != nil {
			return err
		}
		for ctx.Err() == nil && len(slots) < cap(slots) {
			if room, err := n.Room(whole, q); err != nil || !room {
				if err != nil {
					return err
				}
				break
			}
			id, some, err := n.Claim(whole, q)
			if err != nil {
				return err
			}
			if !some {
				break
			}
			slots <- struct{}{}
			if s.Stuck {
				continue
			}
			if n.Claims == Update { // the third step of the claim, before another one looks for what is claimed
				if _, err := n.Start(whole, id); err != nil {
					return err
				}
			}
			runners.Go(func() {
				defer func() { <-slots }()
				if err := s.runTask(whole, n, id); err != nil {
					select {
					case failed <- fmt.Errorf("task %s: %w", id.Hex(), err):
					default:
					}
				}
			})
		}
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// runOne is the task runner as a program of its own. It takes the arguments that a node of Disbatch 4 gives it, and no others.
func (s *Settings) runOne(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("task_runner", flag.ContinueOnError)
	config, task, gfs := f.String("config", "", ""), f.String("task", "", ""), f.String("gfs", "", "")
	f.Bool("quiet", false, "")
	f.Bool("testing", false, "")
	err := f.Parse(args)
	if err == nil && (*config == "" || *gfs != "auto" && *gfs != "1" && *gfs != "" || f.NArg() > 0) {
		err = fmt.Errorf("a task runner is not started with %q", args)
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(*config); err != nil {
		return err
	}
	id, err := bson.ObjectIDFromHex(*task)
	if err != nil {
		return err
	}
	db, err := Open(s.URI, s.Database)
	if err != nil {
		return err
	}
	t, err := db.Task(ctx, id)
	if err != nil {
		return err
	}
	if s.Dies == "claimed" {
		os.Exit(9)
	}
	if s.Stuck {
		time.Sleep(time.Hour)
	}
	node, ok := t.Node.(string)
	if !ok || t.Status != Claimed {
		return fmt.Errorf("the task's node is %v, and its status %d: nobody has claimed it", t.Node, t.Status)
	}
	return s.runTask(ctx, &Node{Database: db, Name: node, Claims: FindOneAndUpdate}, id)
}

// runTask is the task runner: it knows the task's id, and reads the rest.
func (s *Settings) runTask(ctx context.Context, n *Node, id bson.ObjectID) error {
	t, err := n.Task(ctx, id)
	if err != nil {
		return err
	}
	if n.Claims != Update {
		if is, err := n.Start(ctx, id); err != nil || !is {
			return errors.Join(err, errors.New("it is not this node's any more"))
		}
	}
	if s.Dies == "running" {
		os.Exit(9)
	}
	stdout, err := Effect(s.Dir, n.Name, t.Params, s.Work, s.Until)
	if err != nil {
		return err
	}
	if is, err := n.End(ctx, id, Succeeded); err != nil || !is {
		return errors.Join(err, errors.New("it was ended by somebody else"))
	}
	time.Sleep(s.Pause)
	return n.Output(ctx, id, stdout, "")
}

// Plugin is a program for nodes of Sluice that does the same as Effect; the nodes run it in
// Effect's folder. Three files of each task are its record. A line in effects names the node of
// each run. got has the params, and running says that it runs.
const Plugin = `#!/bin/sh
set -e
: > "running/$name"
echo "$SLUICE_NODE" >> "effects/$name"
cat > "got/$name"
sleep "${work:-0}"
while [ -n "$until" ] && ! [ -e "$until" ]; do sleep 0.05; done
rm "running/$name"
echo "{\"of\": \"$name\"}" | tee "$SLUICE_OUTPUT"
`

// Effect does a task as Plugin does, and returns its output. It ends when the file of until exists,
// if it names one.
func Effect(dir, node string, params bson.Raw, work time.Duration, until string) (stdout string, err error) {
	var p struct {
		Name string `bson:"name"`
	}
	if err := bson.Unmarshal(params, &p); err != nil {
		return "", err
	}
	running := filepath.Join(dir, "running", p.Name)
	if err := os.WriteFile(running, nil, 0o600); err != nil {
		return "", err
	}
	f, err := os.OpenFile(filepath.Join(dir, "effects", p.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintln(f, node)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	got, err := bson.MarshalExtJSON(params, false, false)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "got", p.Name), got, 0o600)
	}
	time.Sleep(work)
	for until != "" {
		if _, err := os.Stat(until); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Sprintf("{\"of\": %q}\n", p.Name), errors.Join(err, os.Remove(running))
}
