package hiding

import (
	"bytes"
	"context"
	"io"

	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// results are those of a store without its secrets.
type results struct {
	store.Results
	r *reader
}

// OpenResult implements store.Results. The size is that of what is stored.
func (k *results) OpenResult(ctx context.Context, id plan.TaskID, stream plan.Stream) (io.ReadCloser, int64, error) {
	s, err := k.r.secrets(ctx)
	if err != nil {
		return nil, 0, err
	}
	found, err := k.r.owns(ctx, s, []plan.TaskID{id})
	if err != nil {
		return nil, 0, err
	}
	values := found[id].values // of a task that is not there is nothing to be had
	in, size, err := k.Results.OpenResult(ctx, id, stream)
	if err != nil || len(values) == 0 {
		return in, size, err
	}
	return &masked{ReadCloser: in, values: values}, size, nil
}

// masked reads a text without the values in it, however they are cut by reads.
type masked struct {
	io.ReadCloser
	values []string // the longest first
	held   []byte   // read, and may end in the beginning of a value
	out    []byte   // can be handed out
	err    error
}

// Read implements io.Reader.
func (m *masked) Read(p []byte) (int, error) {
	for len(m.out) == 0 && m.err == nil {
		block := make([]byte, 32<<10)
		var n int
		n, m.err = m.ReadCloser.Read(block)
		m.held = append(m.held, block[:n]...)
		m.mask(m.err != nil)
	}
	n := copy(p, m.out)
	m.out = m.out[n:]
	if n == 0 && len(p) > 0 {
		return 0, m.err
	}
	return n, nil
}

// mask moves what can be shown of held to out; all of it at the end.
func (m *masked) mask(end bool) {
	until := len(m.held) // no value that begins before is cut off
	if !end {
		until = max(0, until-len(m.values[0])+1)
	}
	for {
		at, length := len(m.held), 0
		for _, v := range m.values {
			if i := bytes.Index(m.held, []byte(v)); i >= 0 && i < at {
				at, length = i, len(v)
			}
		}
		if at >= until {
			m.out = append(m.out, m.held[:until]...)
			m.held = append([]byte{}, m.held[until:]...)
			return
		}
		m.out = append(append(m.out, m.held[:at]...), secret.Hidden...)
		m.held = m.held[at+length:]
		until = max(0, until-at-length)
	}
}
