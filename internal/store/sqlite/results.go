package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var (
	_ store.Results = (*Store)(nil)
	_ store.Packs   = (*Store)(nil)
)

// chunkSize is how many bytes of a result one row has.
const chunkSize = 255 << 10

// PutResults implements store.Results. It is one transaction, so that no part of it is ever seen, or left; others wait while it is made,
// about half a second for 128 MiB.
func (s *Store) PutResults(ctx context.Context, c protocol.Claim, stdout, stderr *io.SectionReader, _ protocol.GFS) error {
	return s.write(ctx, func(t *tx) error {
		r := t.claimed(1, func(int) *protocol.Claim { return &c })[0]
		if r == nil {
			return fmt.Errorf("results of task %s, attempt %d: %w", c.Task, c.Attempt, plan.ErrClaimLost)
		}
		t.dropResults(list([]int64{r.n}))
		err := t.putResult(ctx, r.n, plan.Stdout, stdout)
		if err == nil {
			err = t.putResult(ctx, r.n, plan.Stderr, stderr)
		}
		if err != nil {
			return fmt.Errorf("results of task %s: %w", c.Task, err)
		}
		return nil
	})
}

// flushPrinted keeps what came with endings.
func (t *tx) flushPrinted() {
	if len(t.printed) == 0 {
		return
	}
	t.dropResults(list(each(t.printed, func(p *printed) int64 { return p.task })))
	for _, p := range t.printed {
		for _, stream := range []plan.Stream{plan.Stdout, plan.Stderr} {
			if text := p.Of(stream); text != nil {
				_ = t.putResult(t.ctx, p.task, stream, io.NewSectionReader(bytes.NewReader(text), 0, int64(len(text)))) // from memory
			}
		}
	}
	t.printed = t.printed[:0]
}

func (t *tx) putResult(ctx context.Context, task int64, stream plan.Stream, from *io.SectionReader) error {
	if from == nil {
		return nil
	}
	t.exec("INSERT INTO results (task, stream, size) VALUES (?, ?, ?)", task, int64(stream), from.Size())
	r := t.query("SELECT n FROM results WHERE task = ? AND stream = ?", task, int64(stream))
	if !r.one() {
		return nil // the transaction has failed
	}
	n := r.int(0)
	chunk := make([]byte, min(chunkSize, from.Size()))
	for at, seq := int64(0), 0; at < from.Size() && t.err == nil; seq++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		chunk = chunk[:min(chunkSize, from.Size()-at)]
		if read, err := from.ReadAt(chunk, at); read < len(chunk) {
			return err
		}
		t.exec("INSERT INTO chunks (result, seq, data) VALUES (?, ?, ?)", n, seq, chunk)
		at += int64(len(chunk))
	}
	return nil
}

// dropResults deletes what is kept of what tasks printed, whose numbers are listed.
func (t *tx) dropResults(tasks string) {
	t.exec("DELETE FROM chunks WHERE result IN (SELECT r.n FROM json_each(?) AS j CROSS JOIN results AS r ON r.task = j.value)", tasks)
	t.exec("DELETE FROM results WHERE task IN (SELECT value FROM json_each(?))", tasks)
}

func (s *Store) OpenResult(ctx context.Context, id plan.TaskID, stream plan.Stream) (io.ReadCloser, int64, error) {
	found := result{s: s, ctx: ctx, of: "results of task " + id.String(), size: -1}
	err := s.read(ctx, func(c *conn) error {
		n, _, err := c.taskNumber(id)
		if err != nil {
			return err
		}
		if r := c.query("SELECT n, size FROM results WHERE task = ? AND stream = ?", n, int64(stream)); r.one() {
			found.n, found.size = r.int(0), r.int(1)
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	return io.NopCloser(&found), found.size, nil
}

// A result is read a chunk at a time, so that nothing is held open between.
type result struct {
	s    *Store
	ctx  context.Context // of who opened it, which is that of reading
	of   string          // what it is, for errors
	n    int64
	size int64
	at   int64 // how much of it was fetched
	seq  int
	left []byte // what of that was not handed over yet
}

// Read implements io.Reader.
func (f *result) Read(p []byte) (int, error) {
	if len(f.left) == 0 && f.at < f.size {
		err := f.s.read(f.ctx, func(c *conn) error {
			r := c.query("SELECT data FROM chunks WHERE result = ? AND seq = ?", f.n, f.seq)
			if !r.one() {
				return fmt.Errorf("the %s changed, or were deleted, meanwhile: %w", f.of, io.ErrUnexpectedEOF)
			}
			f.left = r.bytes(0) // a copy of the driver's
			return nil
		})
		if err != nil {
			return 0, err
		}
		f.seq++
		f.at += int64(len(f.left))
	}
	if len(f.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, f.left)
	f.left = f.left[n:]
	return n, nil
}

// A job pack lies where results do, as what a task with the number of its plan below 0 printed.

// PutPack implements store.Packs. It is one transaction, as PutResults is.
func (s *Store) PutPack(ctx context.Context, id plan.PlanID, pack *io.SectionReader) error {
	return s.write(ctx, func(t *tx) error {
		p, err := t.ToDelete(ctx, id)
		if err == nil {
			err = rules.CheckPack(&p.Plan, pack.Size())
		}
		if err != nil {
			return err
		}
		t.dropPack(p)
		if err := t.putResult(ctx, -p.n, plan.Stdout, pack); err != nil {
			return fmt.Errorf("job pack of %s: %w", p.Title(), err)
		}
		return nil
	})
}

func (t *tx) dropPack(p *planRow) { t.dropResults(list([]int64{-p.n})) }

func (s *Store) OpenPack(ctx context.Context, id plan.PlanID) (io.ReadCloser, int64, error) {
	found := result{s: s, ctx: ctx, of: "chunks of the job pack of plan " + id.String()}
	err := s.read(ctx, func(c *conn) error {
		r := c.query("SELECT r.n, r.size FROM plans AS p CROSS JOIN results AS r ON r.task = -p.n WHERE p.id = ?", id.ID[:])
		if !r.one() {
			return fmt.Errorf("job pack of plan %s: %w", id, plan.ErrNotFound)
		}
		found.n, found.size = r.int(0), r.int(1)
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	return io.NopCloser(&found), found.size, nil
}
