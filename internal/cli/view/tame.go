package view

import (
	"bytes"
	"io"

	"github.com/seed-1177d267/sluice/internal/cells"
)

// A Tame writes to a terminal, which what is printed must not change, in whole lines.
type Tame struct {
	W    io.Writer
	left []byte
}

// Write implements io.Writer.
func (t *Tame) Write(p []byte) (int, error) {
	t.left = append(t.left, p...)
	whole := bytes.LastIndexByte(t.left, '\n') + 1
	if whole == 0 && len(t.left) > 64<<10 {
		whole = len(t.left)
	}
	return len(p), t.flush(whole)
}

func (t *Tame) flush(n int) error {
	_, err := io.WriteString(t.W, cells.Tame(string(t.left[:n])))
	t.left = append(t.left[:0], t.left[n:]...)
	return err
}

// Flush writes the line that has no end.
func (t *Tame) Flush() error { return t.flush(len(t.left)) }
