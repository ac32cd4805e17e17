package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/seed-1177d267/sluice/internal/auth"
)

// askPassword returns a new password: on a terminal it is asked for twice and not shown, else it is the first line of standard input. It is never
// an argument, which other users of a machine can see.
func (a *app) askPassword(ctx context.Context, user string) (string, error) {
	f, ok := a.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		line, err := bufio.NewReader(io.LimitReader(a.Stdin, 2*auth.MostPassword)).ReadString('\n')
		if err != nil && err != io.EOF {
			return "", err
		}
		password := strings.TrimRight(line, "\r\n")
		if password == "" {
			return "", usagef("standard input has no password; write it as the first line there, or use a " +
				"terminal")
		}
		return password, asUsage(auth.CheckPassword(password))
	}
	password, err := a.readHidden(ctx, f, fmt.Sprintf("password of %s: ", user))
	if err != nil {
		return "", err
	}
	if err := auth.CheckPassword(password); err != nil {
		return "", asUsage(err)
	}
	again, err := a.readHidden(ctx, f, "once more: ")
	if err == nil && again != password {
		err = usagef("the two passwords differ; nothing was changed")
	}
	return password, err
}

// readHidden reads a line from a terminal that does not show it. Whatever ends it, the terminal shows again what is typed.
func (a *app) readHidden(ctx context.Context, f *os.File, prompt string) (string, error) {
	state, err := term.GetState(int(f.Fd()))
	if err != nil {
		return "", err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	quit := a.quit.heed()
	defer a.quit.leave()
	fmt.Fprint(a.Stderr, prompt)
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() { // which a signal leaves behind, as the process ends
		text, err := term.ReadPassword(int(f.Fd()))
		read <- line{text, err}
	}()
	select {
	case l := <-read:
		fmt.Fprintln(a.Stderr)
		if len(l.text) == 0 && (l.err == nil || l.err == io.EOF) {
			l.err = usagef("no password was given; nothing was changed")
		}
		return string(l.text), l.err
	case <-quit:
	case <-ctx.Done():
	}
	fmt.Fprintln(a.Stderr)
	return "", errors.Join(errInterrupted, term.Restore(int(f.Fd()), state))
}
