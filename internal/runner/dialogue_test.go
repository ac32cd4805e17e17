//go:build unix

package runner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"
)

// converse runs a shell's line that must start, and speaks with it.
func converse(t *testing.T, ctx context.Context, line string, talk func(*Dialogue, *bufio.Reader)) Result {
	t.Helper()
	cmd := sh(line)
	cmd.Grace = 100 * time.Millisecond
	r, err := Converse(ctx, cmd, func(d *Dialogue) { talk(d, bufio.NewReader(d)) })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestADialogue(t *testing.T) {
	var all strings.Builder
	r := converse(t, t.Context(), `echo one; echo two >&2; read x; echo "got $x"; read y || echo closed`, func(d *Dialogue, in *bufio.Reader) {
		for range 2 {
			line, _ := in.ReadString('\n')
			all.WriteString(line)
		}
		fmt.Fprintln(d, "hello")
		line, _ := in.ReadString('\n')
		all.WriteString(line)
	})
	if all.String() != "one\ntwo\ngot hello\n" || !errors.Is(r.Stopped, ErrOver) || r.Signal != "SIGTERM" {
		t.Errorf("it said %q, and ended as %+v", all.String(), r)
	}
}

func TestTheRestOfADialogueIsReadAfterTheCommand(t *testing.T) {
	var all []byte
	r := converse(t, t.Context(), `echo one; exit 3`, func(d *Dialogue, in *bufio.Reader) {
		<-d.Exited()
		all, _ = io.ReadAll(in)
	})
	if string(all) != "one\n" || r.Stopped != nil || r.Code != 3 {
		t.Errorf("it said %q, and ended as %+v", all, r)
	}
}

func TestACommandThatEndsTakesItsGroupAlong(t *testing.T) {
	l := newLiving(t)
	var all []byte
	line := fmt.Sprintf(`exec 5>%s; (trap "" TERM; echo >&5; sleep 1000; echo late) & read x; exit 4`, l.path)
	r := converse(t, t.Context(), line, func(d *Dialogue, in *bufio.Reader) {
		l.lines(t, 1)
		fmt.Fprintln(d, "go")
		all, _ = io.ReadAll(in)
	})
	if r.Code != 4 || len(all) > 0 {
		t.Errorf("it said %q, and ended as %+v", all, r)
	}
	l.none(t, patience)
}

func TestACommandThatIgnoresTheEndOfItsDialogue(t *testing.T) {
	l := newLiving(t)
	r := converse(t, t.Context(), fmt.Sprintf(`exec 5>%s; trap "" TERM; echo >&5; while :; do sleep 1000; done`, l.path), func(*Dialogue, *bufio.Reader) { l.lines(t, 1) })
	if r.Signal != "SIGKILL" || !errors.Is(r.Stopped, ErrOver) {
		t.Errorf("it ended as %+v", r)
	}
	l.none(t, patience)
}

func TestAProcessThatLeftTheGroupDoesNotHangADialogue(t *testing.T) {
	var pid int
	r := converse(t, t.Context(), `setsid sh -c 'echo $$; while :; do echo flood; done' & read x; exit 0`, func(d *Dialogue, in *bufio.Reader) {
		_, _ = fmt.Fscan(in, &pid)
		fmt.Fprintln(d, "go")
		_, _ = io.Copy(io.Discard, in)
	})
	syscall.Kill(pid, syscall.SIGKILL)
	if r.Stopped != nil || r.Code != 0 || pid == 0 {
		t.Errorf("it ended as %+v", r)
	}
}

func TestTheContextEndsADialogue(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("a person cancelled it")
	r := converse(t, ctx, `echo one; sleep 1000`, func(d *Dialogue, in *bufio.Reader) {
		_, _ = in.ReadString('\n')
		cancel(why)
		_, _ = io.Copy(io.Discard, in)
	})
	if !errors.Is(r.Stopped, why) {
		t.Errorf("it ended as %+v", r)
	}
	if r, err := Converse(ctx, sh("exit 0"), func(*Dialogue) { t.Error("it was started") }); err != nil || !errors.Is(r.Stopped, why) {
		t.Errorf("after the end: %+v, %v", r, err)
	}
	if _, err := Converse(t.Context(), Command{Args: []string{"/nosuch/program"}, Env: environment}, func(*Dialogue) {}); err == nil || !strings.Contains(err.Error(), "/nosuch/program") {
		t.Errorf("a program that is not there: %v", err)
	}
}
