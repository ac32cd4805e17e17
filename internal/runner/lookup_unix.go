//go:build unix

package runner

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-1177d267/sluice/plugins"
)

// defaultPath is where programs are looked for when the environment has no PATH, as execvp does.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// lookup returns the path of the command's program, as it is to be executed in its folder.
func lookup(cmd *Command) (string, error) {
	if len(cmd.Args) == 0 || cmd.Args[0] == "" {
		return "", errors.New("the command is empty: name a program to run")
	}
	name := cmd.Args[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := defaultPath
	for _, v := range cmd.Env {
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			path = value
			break
		}
	}
	for _, folder := range filepath.SplitList(path) {
		if folder == "" {
			folder = "." // as everywhere: an empty part is the working directory
		}
		program := folder + "/" + name
		if info, err := os.Stat(inFolder(cmd.Dir, program)); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return program, nil
		}
	}
	return "", plugins.NotBegun(fmt.Errorf("command %q is not in the PATH of this node: install it there, or give the program's full path (PATH=%s)", name, path))
}

// executable reports whether this process may execute the file.
func executable(path string) bool { return unix.Access(path, unix.X_OK) == nil }

// inFolder returns the path as it is for this process, of a path as it is for a command that runs in dir.
func inFolder(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// explain says why the command could not be started, and what to do. The system's error is the same
// for a missing folder and a missing program.
func explain(cmd *Command, program string, err error) error {
	if full := (*fullError)(nil); errors.Is(err, errNoGuard) || errors.As(err, &full) {
		return fmt.Errorf("command %q: %w", program, err)
	}
	if cmd.Dir != "" {
		if info, err := os.Stat(cmd.Dir); err != nil {
			return fmt.Errorf("folder %q to run %q in: %w on this node: create it, or change dir", cmd.Dir, cmd.Args[0], reason(err))
		} else if !info.IsDir() {
			return fmt.Errorf("%q to run %q in is not a folder: change dir", cmd.Dir, cmd.Args[0])
		}
	}
	path := inFolder(cmd.Dir, program)
	switch {
	case errors.Is(err, syscall.ENOENT):
		if _, missing := os.Stat(path); missing != nil {
			return fmt.Errorf("command %q: %w on this node: install it, or correct its path", path, reason(err))
		}
		return fmt.Errorf("command %q needs %s to run: %w: install that, or correct the first line of the command", path, interpreter(path), reason(err))
	case errors.Is(err, fs.ErrPermission):
		if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
			return fmt.Errorf("command %q is a folder: name a program in it", path)
		} else if statErr == nil && info.Mode()&0o111 == 0 {
			return fmt.Errorf("command %q is not executable: chmod +x it, or run it by its interpreter", path)
		}
		return fmt.Errorf("command %q: %w: let the node's user execute it, and enter folder %q", path, reason(err), cmd.Dir)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("command %q is neither a program for this system nor a script that begins with #!: %w", path, reason(err))
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("command %q: its arguments and environment are too large, %d bytes: %w: hand large values over in files", path, argumentBytes(cmd), reason(err))
	case errors.Is(err, syscall.EINVAL) && slices.ContainsFunc(slices.Concat(cmd.Args, cmd.Env), hasNUL):
		return fmt.Errorf("command %q: an argument or a variable of its environment holds a NUL byte: remove it", path)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("command %q: %w: raise the limit of open files (ulimit -n), or run fewer tasks at once", path, reason(err))
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM):
		return fmt.Errorf("command %q: the node has no room for another process: %w: raise the limit of processes (ulimit -u), or run fewer tasks at once", path, reason(err))
	}
	return fmt.Errorf("command %q: %w", path, err)
}

// reason takes from an error what names the path and the call again.
func reason(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// interpreter says what a script names in its first line.
func interpreter(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "its interpreter"
	}
	defer f.Close()
	line, _ := bufio.NewReaderSize(f, 256).ReadSlice('\n')
	if name, ok := strings.CutPrefix(string(line), "#!"); ok {
		return fmt.Sprintf("%q", strings.TrimRight(name, "\n")) // quoted: a \r at its end is the usual reason
	}
	return "its loader"
}

func argumentBytes(cmd *Command) (n int) {
	for _, s := range slices.Concat(cmd.Args, cmd.Env) {
		n += len(s) + 1
	}
	return n
}

func hasNUL(s string) bool { return strings.IndexByte(s, 0) >= 0 }
