package mongodb

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

var _ store.Results = (*Store)(nil)

// The output of a task is where Disbatch has it: in stdout and stderr of its document, as strings.
// Otherwise these hold the id of a file in GridFS, whose chunks hold strings.

const (
	chunkBytes     = 255 << 10 // of a file in one chunk, at most: GridFS's default
	chunksAtOnce   = 16        // that one command inserts, or one answer has
	takeBackWithin = 10 * time.Second
)

// fileDoc is a file of GridFS.
type fileDoc struct {
	ID         bson.ObjectID `bson:"_id"`
	Length     int64         `bson:"length"` // bytes
	ChunkSize  int           `bson:"chunkSize"`
	UploadDate time.Time     `bson:"uploadDate"`
	Filename   string        `bson:"filename"`
	Metadata   fileOf        `bson:"metadata"`
}

type fileOf struct {
	Task bson.ObjectID `bson:"task_id"`
}

type chunkDoc struct {
	ID   bson.ObjectID `bson:"_id"`
	File bson.ObjectID `bson:"files_id"`
	N    int           `bson:"n"`
	Data text          `bson:"data"`
}

// PutResults implements store.Results. Files go in before the write that names them and checks the claim, and out again if that was lost;
// each is entered before its chunks, so that what a dead process left is found: by the next put, or as the task is retried or deleted.
func (s *Store) PutResults(ctx context.Context, c protocol.Claim, stdout, stderr *io.SectionReader, mode protocol.GFS) (err error) {
	defer about(&err, "results of task %s, attempt %d", c.Task, c.Attempt)
	p := put{
		Store: s, task: oid(c.Task.ID), claimed: onlyActive(d("token", bson.ObjectID(c.Token), "attempt", c.Attempt)),
		stdout: printed{name: "stdout", from: stdout}, stderr: printed{name: "stderr", from: stderr},
	}
	return p.run(ctx, mode)
}

// A put is one call of PutResults.
type put struct {
	*Store
	task           bson.ObjectID
	claimed        bson.D
	stdout, stderr printed
	files          idList // that it made
}

// printed is what was printed on one stream.
type printed struct {
	name  string
	from  *io.SectionReader // nil: null
	bytes int64             // as valid text
	file  bson.ObjectID     // that has it
}

func (p *put) run(ctx context.Context, mode protocol.GFS) error {
	if err := errors.Join(p.stdout.measure(), p.stderr.measure()); err != nil {
		return err
	}
	if outFile, errFile := mode.Files(p.stdout.bytes, p.stderr.bytes); outFile || errFile { // a lost claim is to cost no upload
		task, err := wire.FindOne[struct{}](ctx, p.tasks, append(d("_id", p.task), p.claimed...), wire.Query{Fields: ones("_id")})
		if err == nil && task == nil {
			err = plan.ErrClaimLost
		}
		if err != nil {
			return err
		}
	}
	old, err := p.filesOf(ctx, idList{p.task})
	if err != nil {
		return err
	}
	if err := p.place(ctx, mode); err != nil {
		return p.takeBack(ctx, err)
	}
	return p.dropFiles(ctx, old)
}

// place puts the streams where the mode says. If the document takes no more, as with large params, they go into files; with GFSNever what the
// server says of that becomes the standard output, as Disbatch has it.
func (p *put) place(ctx context.Context, mode protocol.GFS) error {
	outFile, errFile := mode.Files(p.stdout.bytes, p.stderr.bytes)
	refused, err := p.try(ctx, outFile, errFile)
	if refused == nil || err != nil {
		return err
	}
	if mode != protocol.GFSNever {
		refused, err = p.try(ctx, true, true)
		return cmp.Or(err, refused)
	}
	p.stdout.say(refused.Error())
	for _, stderr := range []*io.SectionReader{p.stderr.from, nil} {
		if p.stderr.from = stderr; stderr == nil {
			p.stderr.bytes = 0
		}
		if refused, err = p.try(ctx, false, false); refused == nil || err != nil {
			return err
		}
	}
	return refused
}

// errNamed is of a write that may have been made, so that the files that it names have to stay.
type errNamed struct{ error }

func (e errNamed) Unwrap() error { return e.error }

// try puts the streams into files, or the document, if the claim holds. refused says why the document does not take that.
func (p *put) try(ctx context.Context, outFile, errFile bool) (refused, err error) {
	inline := int64(0)
	for _, s := range []struct {
		*printed
		inFile bool
	}{{&p.stdout, outFile}, {&p.stderr, errFile}} {
		switch {
		case !s.inFile:
			inline += s.bytes
		case s.file.IsZero():
			if err := p.upload(ctx, s.printed); err != nil {
				return nil, err
			}
		}
	}
	if inline > largestDocument { // nothing is gained by sending it
		return fmt.Errorf("what it printed has %d bytes, and a document at most %d", inline, largestDocument), nil
	}
	stdout, errOut := p.stdout.value(outFile)
	stderr, err := p.stderr.value(errFile)
	if err = cmp.Or(errOut, err); err != nil {
		return nil, err
	}
	matched, misfits, err := p.BulkEach(ctx, p.tasks, []wire.Change{{ID: p.task, Where: p.claimed, Update: d("$set", d("stdout", stdout, "stderr", stderr))}})
	switch {
	case outgrown(err):
		return err, nil
	case err != nil:
		return nil, errNamed{err}
	case len(misfits) > 0 && outgrown(misfits[0].Err):
		return misfits[0].Err, nil
	case len(misfits) > 0:
		return nil, misfits[0].Err
	case matched == 0:
		return nil, plan.ErrClaimLost
	}
	return nil, nil
}

// outgrown reports whether a write was refused since its document would have been too large.
func outgrown(err error) bool {
	e, ok := errors.AsType[mongo.BulkWriteError](err)
	return errors.Is(err, driver.ErrDocumentTooLarge) || ok && wire.IsTooLarge(e)
}

// takeBack deletes the files that it made. A cancelled call has a little time left for that.
func (p *put) takeBack(ctx context.Context, err error) error {
	if _, named := errors.AsType[errNamed](err); named || len(p.files) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackWithin)
	defer cancel()
	_ = p.dropFiles(ctx, p.files) // what is left goes with the next put, or with the task
	return err
}

// upload makes a file of a stream, whose chunks are valid text.
func (p *put) upload(ctx context.Context, stream *printed) error {
	c := newCutter(stream.from)
	return p.uploadChunks(ctx, stream, func() (any, int, error) {
		piece, err := c.next()
		return text(bytes.Clone(piece)), len(piece), err
	})
}

// uploadChunks makes a file of what next returns, each a chunk of so many bytes, up to one of 0.
func (p *put) uploadChunks(ctx context.Context, stream *printed, next func() (data any, size int, err error)) error {
	at, err := p.Now(ctx)
	if err != nil {
		return err
	}
	f := fileDoc{ID: bson.NewObjectID(), Length: stream.bytes, ChunkSize: chunkBytes, UploadDate: at, Filename: stream.name, Metadata: fileOf{p.task}}
	stream.file, p.files = f.ID, append(p.files, f.ID)
	if _, err := p.Insert(ctx, p.Store.files, f); err != nil {
		return err
	}
	var docs []any
	for n := 0; ; n++ {
		data, size, err := next()
		if err != nil {
			return err
		}
		if size > 0 {
			docs = append(docs, d("_id", bson.NewObjectID(), "files_id", f.ID, "n", n, "data", data))
		}
		if len(docs) == chunksAtOnce || size == 0 {
			if _, err := p.Insert(ctx, p.chunks, docs...); err != nil {
				return err
			}
			docs = docs[:0]
		}
		if size == 0 {
			return nil
		}
	}
}

// each calls do with each piece of the stream, as valid text.
func (s *printed) each(do func(piece []byte)) error {
	c := newCutter(s.from)
	for {
		piece, err := c.next()
		if err != nil || len(piece) == 0 {
			return err
		}
		do(piece)
	}
}

// measure counts the bytes of the stream as valid text.
func (s *printed) measure() error {
	s.bytes = 0
	return s.each(func(piece []byte) { s.bytes += int64(len(piece)) })
}

// value is what the document says of the stream.
func (s *printed) value(file bool) (any, error) {
	switch {
	case file:
		return s.file, nil
	case s.from == nil:
		return nil, nil
	}
	all := make(text, 0, s.bytes)
	err := s.each(func(piece []byte) { all = append(all, piece...) })
	return all, err
}

// inDocument is what a document says of a stream that came with an ending: a string, or null.
func inDocument(stream []byte) any {
	if stream == nil {
		return nil
	}
	return text(bytes.ToValidUTF8(stream, []byte("\uFFFD")))
}

// say replaces the stream by a text.
func (s *printed) say(what string) {
	what = validText(what)
	s.from, s.bytes = io.NewSectionReader(strings.NewReader(what), 0, int64(len(what))), int64(len(what))
}

// A cutter cuts a stream into chunks of valid text: no character is in two of them, and bytes that are of none become U+FFFD.
type cutter struct {
	from  *io.SectionReader
	at    int64
	block []byte // read last; it begins with what may be the beginning of a character
	begun int    // of how many bytes that is
	ready []byte // valid, and more than a chunk where there is more
}

func newCutter(from *io.SectionReader) *cutter {
	if from == nil {
		from = io.NewSectionReader(strings.NewReader(""), 0, 0)
	}
	return &cutter{from: from, block: make([]byte, min(chunkBytes, from.Size())+utf8.UTFMax)}
}

// next returns the next chunk, which is good until it is called again; nothing at the end.
func (c *cutter) next() ([]byte, error) {
	for len(c.ready) <= chunkBytes && c.at < c.from.Size() {
		n := min(chunkBytes, c.from.Size()-c.at)
		block := c.block[:c.begun+int(n)]
		if got, err := c.from.ReadAt(block[c.begun:], c.at); got < int(n) {
			return nil, fmt.Errorf("read what it printed: %w", err)
		}
		c.at += n
		if c.begun = 0; c.at < c.from.Size() {
			c.begun = begun(block)
		}
		whole := block[:len(block)-c.begun]
		if utf8.Valid(whole) {
			c.ready = append(c.ready, whole...)
		} else {
			c.ready = append(c.ready, bytes.ToValidUTF8(whole, []byte("\uFFFD"))...)
		}
		copy(c.block, block[len(whole):])
	}
	n := len(c.ready)
	if n > chunkBytes {
		for n = chunkBytes; !utf8.RuneStart(c.ready[n]); n-- {
		}
	}
	piece := c.ready[:n]
	c.ready = c.ready[n:]
	return piece, nil
}

// begun returns how many bytes at the end may be the beginning of a character.
func begun(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// filesOf returns the ids of all files of tasks.
func (s *Store) filesOf(ctx context.Context, tasks idList) (ids idList, err error) {
	files, err := wire.Find[fileDoc](ctx, s.files, d("metadata.task_id", d("$in", tasks)), wire.Query{Fields: ones("_id")})
	return idsFrom(files, func(f fileDoc) bson.ObjectID { return f.ID }), err
}

// dropFiles deletes files with their chunks.
func (s *Store) dropFiles(ctx context.Context, ids idList) error {
	if len(ids) == 0 {
		return nil
	}
	g := s.Series(ctx)
	g.Remove(s.chunks, d("files_id", d("$in", ids)))
	g.Remove(s.files, d("_id", d("$in", ids)))
	return g.Err
}

// OpenResult implements store.Results.
func (s *Store) OpenResult(ctx context.Context, id plan.TaskID, stream plan.Stream) (_ io.ReadCloser, size int64, err error) {
	name, of := "stdout", func(t *taskDoc) bson.RawValue { return t.Stdout.value }
	if stream == plan.Stderr {
		name, of = "stderr", func(t *taskDoc) bson.RawValue { return t.Stderr.value }
	}
	t, err := s.task(ctx, id, d(name, 1))
	if err != nil {
		return nil, 0, err
	}
	defer about(&err, "%s of task %s", name, id)
	var inline text
	switch value := of(t); value.Type {
	case bson.TypeObjectID:
		return s.openFile(ctx, value.ObjectID())
	case bson.TypeString, bson.TypeBinary:
		if err := value.Unmarshal(&inline); err != nil {
			return nil, 0, err
		}
		return io.NopCloser(bytes.NewReader(inline)), int64(len(inline)), nil
	}
	return io.NopCloser(bytes.NewReader(nil)), -1, nil
}

// openFile opens a file of GridFS, whether its chunks hold strings or, as the drivers' own, bytes.
func (s *Store) openFile(ctx context.Context, id bson.ObjectID) (io.ReadCloser, int64, error) {
	f, err := wire.FindOne[struct {
		Length bson.RawValue `bson:"length"`
	}](ctx, s.files, d("_id", id), wire.Query{})
	if err == nil && f == nil {
		err = fmt.Errorf("its file %s is not in %s", id.Hex(), s.files.Name())
	}
	if err != nil {
		return nil, 0, err
	}
	length, _ := f.Length.AsFloat64OK()
	if math.IsNaN(length) || length < 0 {
		length = 0
	}
	cursor, err := s.chunks.Find(ctx, d("files_id", id), options.Find().SetSort(d("n", 1)).SetProjection(ones("n data")).SetBatchSize(chunksAtOnce))
	if err != nil {
		return nil, 0, wire.Translate(err)
	}
	return &fileReader{ctx: ctx, id: id, length: int64(length), cursor: cursor}, int64(length), nil
}

// A fileReader reads a file a few chunks at a time.
type fileReader struct {
	ctx    context.Context // of who opened it, which is that of reading
	id     bson.ObjectID
	length int64 // as its writer has it: Disbatch's count characters
	cursor *mongo.Cursor
	n      int
	at     int64
	left   []byte // of the last chunk
}

// Read implements io.Reader.
func (f *fileReader) Read(p []byte) (int, error) {
	for len(f.left) == 0 {
		if !f.cursor.Next(f.ctx) {
			err := wire.Translate(f.cursor.Err())
			switch {
			case err != nil:
				return 0, err
			case f.at < f.length:
				return 0, f.broken()
			}
			return 0, io.EOF
		}
		var c chunkDoc
		if err := wire.Decode(f.cursor.Current, &c); err != nil {
			return 0, wire.Translate(err)
		}
		if c.N != f.n {
			return 0, f.broken()
		}
		f.n++
		f.at += int64(len(c.Data))
		f.left = c.Data
	}
	n := copy(p, f.left)
	f.left = f.left[n:]
	return n, nil
}

func (f *fileReader) broken() error {
	return fmt.Errorf("file %s has no chunk %d, or was replaced meanwhile: %w", f.id.Hex(), f.n, io.ErrUnexpectedEOF)
}

// Close implements io.Closer.
func (f *fileReader) Close() error { return f.cursor.Close(context.WithoutCancel(f.ctx)) }
