package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// childMains are what this very program is as a process that a scenario starts, by its first argument.
var childMains = map[string]func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int{
	busyWord: busyMain, memberWord: memberMain,
}

// A child is the side of such a process that its parent sees.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startChild starts this very program again. The first argument is one of childMains.
func startChild(ctx context.Context, args ...string) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.CommandContext(ctx, program, args...)}
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.in, c.out = in, bufio.NewReader(out)
	return c, c.cmd.Start()
}

// ready waits until the process says that it is there.
func (c *child) ready() error {
	if _, err := c.out.ReadString('\n'); err != nil {
		return fmt.Errorf("process %s did not come up: %w", c.cmd.Args[1], err)
	}
	return nil
}

// tell writes a line to the process.
func (c *child) tell(line string) error {
	_, err := io.WriteString(c.in, line+"\n")
	return err
}

// kill ends the process as a crash does, and returns when that was.
func (c *child) kill() time.Time {
	at := time.Now()
	_ = c.cmd.Process.Kill() // it may have ended already
	_ = c.cmd.Wait()         // which says that it was killed
	return at
}

// stop lets the process end, which it does once its input is closed, unless it was killed.
func (c *child) stop() error {
	if c.cmd.ProcessState != nil {
		return nil
	}
	_ = c.in.Close() // it may have ended already
	return c.cmd.Wait()
}
