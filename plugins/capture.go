package plugins

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/plan"
)

// The limits of a Capture for one stream: in memory, and in all.
const (
	captureMemory = 64 << 10
	captureMost   = 64 << 20
)

// A Capture keeps the complete standard output and standard error of one attempt. A Log keeps a
// bounded part of both together. Large output is in an unnamed file. Any number of goroutines may
// write to a Capture. Close it after the last write.
type Capture struct {
	Dir string // for that file; default os.TempDir()

	mu             sync.Mutex
	stdout, stderr spool
}

// Write adds text to a stream; what Sluice itself says of a task is on neither. Beyond 64 MiB of a stream text is dropped, and a last line
// says so, as it does where text could not be kept.
func (c *Capture) Write(s plan.Stream, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch s {
	case plan.Stdout:
		c.stdout.write(c.Dir, text)
	case plan.Stderr:
		c.stderr.write(c.Dir, text)
	}
}

// Streams returns what was captured. They can be read until Close; text that is written after is not in them.
func (c *Capture) Streams() (stdout, stderr *io.SectionReader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stdout.reader(), c.stderr.reader()
}

// Close frees the captured output.
func (c *Capture) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.stdout.close(), c.stderr.close())
}

// A spool is one stream.
type spool struct {
	tail []byte   // the end of it, which is not in the file; all of it, if there is none
	file *os.File // nil: it is small
	size int64    // of what is in the file
	full bool     // nothing more is kept
}

func (s *spool) write(dir, text string) {
	if s.full || text == "" {
		return
	}
	rest := captureMost - s.size - int64(len(s.tail))
	over := int64(len(text)) > rest
	if over {
		for rest > 0 && !utf8.RuneStart(text[rest]) {
			rest--
		}
		text = text[:rest]
	}
	err := s.add(dir, text)
	switch {
	case err != nil:
		s.end(fmt.Sprintf("[the rest could not be kept: %v]\n", err))
	case over:
		s.end("[more than 64 MiB: the rest is dropped]\n")
	}
}

func (s *spool) add(dir, text string) error {
	for len(s.tail)+len(text) > captureMemory {
		n := min(captureMemory-len(s.tail), len(text))
		s.tail, text = append(s.tail, text[:n]...), text[n:]
		if err := s.flush(dir); err != nil {
			return err
		}
	}
	s.tail = append(s.tail, text...)
	return nil
}

// end writes a last line. It stays in memory, since there may be no room elsewhere.
func (s *spool) end(line string) {
	s.full = true
	if n := len(s.tail); n > 0 && s.tail[n-1] != '\n' {
		s.tail = append(s.tail, '\n')
	}
	s.tail = append(s.tail, line...)
}

// flush puts the tail into the file.
func (s *spool) flush(dir string) (err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp(dir, "sluice-printed-"); err != nil {
			s.file = nil
			return err
		}
		_ = os.Remove(s.file.Name()) // Windows refuses while it is open: there close removes it
	}
	if _, err := s.file.WriteAt(s.tail, s.size); err != nil {
		return err
	}
	s.size += int64(len(s.tail))
	s.tail = s.tail[:0]
	return nil
}

func (s *spool) reader() *io.SectionReader {
	tail := bytes.Clone(s.tail)
	if s.file == nil {
		return io.NewSectionReader(bytes.NewReader(tail), 0, int64(len(tail)))
	}
	return io.NewSectionReader(&spooled{s.file, s.size, tail}, 0, s.size+int64(len(tail)))
}

func (s *spool) close() error {
	s.full, s.tail = true, nil
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	_ = os.Remove(s.file.Name()) // it is gone already, but on Windows
	s.file = nil
	return err
}

// spooled reads a file and what comes after it.
type spooled struct {
	file *os.File
	size int64
	tail []byte
}

// ReadAt implements io.ReaderAt.
func (s *spooled) ReadAt(p []byte, at int64) (n int, err error) {
	if at < s.size {
		n, err = s.file.ReadAt(p[:min(int64(len(p)), s.size-at)], at)
		if err != nil {
			return n, err
		}
	}
	if n == len(p) {
		return n, nil
	}
	n += copy(p[n:], s.tail[min(at+int64(n)-s.size, int64(len(s.tail))):])
	if n < len(p) {
		err = io.EOF
	}
	return n, err
}
