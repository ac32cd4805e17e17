// Package source owns the values that the author of a task gives to its plugin. A value is a text, or
// says where on the node a secret is.
package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/runner"
	"github.com/seed-1177d267/sluice/internal/textfile"
	"github.com/seed-1177d267/sluice/plugins"
)

// private are variables of the node that no task gets, not even by from_env. They tell where its
// store is and how to log in, or carry a supervisor's messages to the node. All names that begin
// with SLUICE_ are private too.
var private = append([]string{"MONGODB_URI", "MONGODB_URL", "MONGO_URI", "MONGO_URL"}, runner.OfServiceManager...)

// Private reports whether a variable of the node is the node's own.
func Private(name string) bool {
	return strings.HasPrefix(name, "SLUICE_") || slices.Contains(private, name)
}

// Environ returns what a program of a task inherits of the environment of its node, each name once.
func Environ(environ []string) (env []string) {
	seen := map[string]bool{}
	for _, v := range environ {
		name, _, ok := strings.Cut(v, "=")
		// The working directory is the command's own: the node's would mislead it.
		if !ok || Private(name) || name == "PWD" || name == "OLDPWD" || seen[name] {
			continue
		}
		env = append(env, v)
		seen[name] = true
	}
	return env
}

// most is the most bytes of a file that becomes a value. On Linux no more fits into one variable of
// a command (MAX_ARG_STRLEN), and the meaning of a plan must not depend on where it runs.
const most = 128 << 10

// A Value is a text, a number or a boolean, or where a secret is read.
type Value struct {
	Text     string
	FromEnv  string
	FromFile string
}

// Secret reports whether the value is read where the task runs, and must not be seen.
func (v *Value) Secret() bool { return v.FromEnv != "" || v.FromFile != "" }

// Parse reads a value. It reports false for what is neither a scalar nor {from_env: NAME} nor
// {from_file: PATH}.
func Parse(raw json.RawMessage) (v Value, ok bool) {
	if text, ok := Scalar(raw); ok {
		return Value{Text: text}, true
	}
	var from map[string]string
	if raw[0] == '{' && json.Unmarshal(raw, &from) == nil && len(from) == 1 {
		v = Value{FromEnv: from["from_env"], FromFile: from["from_file"]}
	}
	return v, v.Secret()
}

// Scalar returns a text, a number or a boolean as a text.
func Scalar(raw json.RawMessage) (text string, ok bool) {
	switch raw[0] {
	case '"':
		return jsontext.TextOf(raw)
	case '{', '[', 'n':
		return "", false
	}
	return string(raw), true
}

// Brief is a value as an error names it.
func Brief(raw json.RawMessage) string {
	const most = 60
	if len(raw) > most {
		return fmt.Sprintf("%s…", bytes.ToValidUTF8(raw[:most], nil))
	}
	return string(raw)
}

// Read returns the value, a secret from where it is on this node.
func (v *Value) Read(ctx context.Context) (string, error) {
	switch {
	case v.FromEnv != "":
		if Private(v.FromEnv) {
			return "", fmt.Errorf("%s is the node's own variable, and no task gets it; start the node with the value in another variable too", v.FromEnv)
		}
		text, ok := os.LookupEnv(v.FromEnv)
		if !ok {
			return "", plugins.NotBegun(fmt.Errorf("the node has no variable %s; set it where the node is started", v.FromEnv))
		}
		return text, nil
	case v.FromFile != "":
		return plugins.Within(ctx, v.readFile)
	}
	return v.Text, nil
}

// readFile returns what the value's file holds. A byte order mark and a newline at its end are left
// out, as editors add them.
func (v *Value) readFile() (string, error) {
	f, err := v.open()
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1)) // it may have grown, and files of /proc have no size
	switch {
	case err != nil:
		return "", plugins.NotBegun(fmt.Errorf("%w; the file is read on the node, as its user", err))
	case len(text) > most:
		return "", fmt.Errorf("%s has more than %d bytes, the most that %s", v.FromFile, most, takes)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(textfile.WithoutMark(text)), "\n"), "\r"), nil
}

// open opens the value's file, if it is one and not too large.
func (v *Value) open() (*os.File, error) {
	info, err := os.Stat(v.FromFile)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", v.FromFile, errNotFile) // reading a FIFO might never end
	}
	if err == nil && info.Size() > most {
		return nil, fmt.Errorf("%s has %d bytes, and %d are the most that %s", v.FromFile, info.Size(), most, takes)
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(v.FromFile)
	}
	if err != nil {
		return nil, plugins.NotBegun(fmt.Errorf("%w; the file is read on the node, as its user", err))
	}
	return f, nil
}

const takes = "a value has; let the task be given the name of the file"

var errNotFile = errors.New("it is not a file")

// There returns why the value cannot be read, as far as that is known without reading a file, which might hang.
func (v *Value) There() error {
	if v.FromFile == "" {
		_, err := v.Read(context.Background()) // which does not wait
		return err
	}
	f, err := v.open()
	if err == nil {
		f.Close()
	}
	return err
}
