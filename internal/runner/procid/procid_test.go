package procid

import (
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// waitForStdin, set in the environment, makes this test's program a process that does nothing until its stdin ends.
const waitForStdin = "PROCID_TEST_WAIT"

func TestMain(m *testing.M) {
	if os.Getenv(waitForStdin) != "" {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestJudge(t *testing.T) {
	const initial, container = "pid:[4026531836]", "pid:[4026532201]"
	host := ID{PID: 1, Start: 5, Boot: "b1", Namespace: initial, Machine: "m1"}
	inContainer := ID{PID: 1, Start: 5, Boot: "b1", Namespace: container, Machine: "m1"}
	windows := ID{PID: 1, Start: 5, Machine: "m1"}
	processes := map[int]uint64{10: 1000, 11: 1100}
	find := func(pid int) (uint64, bool, error) {
		if pid == 66 {
			return 0, false, os.ErrPermission
		}
		start, exists := processes[pid]
		return start, exists, nil
	}
	for _, c := range []struct {
		name         string
		self, id     ID
		alive, known bool
	}{
		{"the same process lives", host, ID{10, 1000, "b1", initial, "m1"}, true, true},
		{"the pid is free", host, ID{12, 1000, "b1", initial, "m1"}, false, true},
		{"the pid is another process's by now", host, ID{11, 1000, "b1", initial, "m1"}, false, true},
		{"the system does not tell about that pid", host, ID{66, 1000, "b1", initial, "m1"}, false, false},
		{"the machine was booted again", host, ID{10, 1000, "b0", initial, "m1"}, false, true},
		{"another machine", host, ID{10, 1000, "b7", initial, "m2"}, false, false},
		{"another boot, and the machine has no id", ID{1, 5, "b1", initial, ""}, ID{10, 1000, "b0", initial, ""}, false, false},
		{"another boot, seen from a container", inContainer, ID{10, 1000, "b0", initial, "m1"}, false, false},
		{"another boot, of a container, which may have moved to another host", host, ID{10, 1000, "b0", container, "m1"}, false, false},
		{"another container of this host has pids of its own", host, ID{10, 1000, "b1", container, "m1"}, false, false},
		{"the same container", inContainer, ID{10, 1000, "b1", container, "m1"}, true, true},
		{"the same container, though its images share no machine id", inContainer, ID{10, 1000, "b1", container, "m9"}, true, true},
		{"no boot to compare, the same machine", windows, ID{10, 1000, "", "", "m1"}, true, true},
		{"no boot to compare, another machine", windows, ID{10, 1000, "", "", "m2"}, false, false},
		{"no boot to compare, no machine either", ID{PID: 1, Start: 5}, ID{PID: 10, Start: 1000}, false, false},
		{"no identity", host, ID{}, false, false},
		{"an identity without a start", host, ID{10, 0, "b1", initial, "m1"}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			alive, known := judge(c.self, c.id, find)
			if alive != c.alive || known != c.known {
				t.Errorf("alive, known = %v, %v; want %v, %v", alive, known, c.alive, c.known)
			}
		})
	}
}

func TestThisProcessLives(t *testing.T) {
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	if self.PID != os.Getpid() || self.Start == 0 {
		t.Errorf("Self() = %+v: want pid %d and a start", self, os.Getpid())
	}
	if alive, known := Alive(self); !alive || !known {
		t.Errorf("alive, known = %v, %v; want true, true", alive, known)
	}
	other := self
	other.Start--
	if alive, known := Alive(other); alive || !known {
		t.Errorf("a process of the same pid that started earlier: alive, known = %v, %v; want false, true", alive, known)
	}
}

func TestAProcessThatExitedIsDeadEvenAsAZombie(t *testing.T) {
	id, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	before := Now()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), waitForStdin+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id.PID = cmd.Process.Pid
	if id.Start, err = Start(id.PID); err != nil {
		t.Fatal(err)
	}
	if now := Now(); id.Start < before || id.Start > now {
		t.Errorf("started at %d, which is not from %d to now, %d", id.Start, before, now)
	}
	if alive, known := Alive(id); !alive || !known {
		t.Errorf("while it runs: alive, known = %v, %v; want true, true", alive, known)
	}
	stdin.Close()
	for deadline := time.Now().Add(time.Minute); ; {
		alive, known := Alive(id)
		if !known {
			t.Fatal("Alive does not know")
		}
		if !alive {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a process that has exited, and was not waited for, counts as alive")
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if alive, known := Alive(id); alive || !known {
		t.Errorf("after the wait: alive, known = %v, %v; want false, true", alive, known)
	}
}

func TestTextForm(t *testing.T) {
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []ID{self, {PID: 1, Start: 2}, {PID: 4, Start: 1 << 63, Boot: "b", Namespace: "pid:[1]", Machine: "m"}} {
		got, err := Parse(id.String())
		if err != nil || got != id {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", id.String(), got, err, id)
		}
	}
	if id, err := Parse(""); err != nil || id != (ID{}) {
		t.Errorf("the empty text: %+v, %v; want the zero ID", id, err)
	}
	for _, text := range []string{"1", "1/2/3/4", "x/2/b/n/m", "-1/2/b/n/m", "1/x/b/n/m", "1/-2/b/n/m", "1/2/b/n/m/o"} {
		if id, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %+v; want an error", text, id)
		}
	}
}
