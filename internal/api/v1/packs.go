package v1

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/jobpack"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
)

// A packBody says whether the body of a request is a job pack.
type packBody int

const (
	noPack   packBody = iota
	mayBe             // if it begins as one, whatever its content type is
	alwaysIs          // whatever it begins with
)

// A receivedPack is the body of a request in a file, because it may have jobpack.MaxSize bytes.
type receivedPack struct {
	content *io.SectionReader
	err     error // why there is none
}

type packKey struct{}

// packOf returns the job pack that a request has as its body; nil if it has none.
func packOf(ctx context.Context) *receivedPack {
	p, _ := ctx.Value(packKey{}).(*receivedPack)
	return p
}

// drained is how much of a body that is too large is read, so that a caller that sends it to its end sees the answer.
const drained = 64 << 20

// receive hands a job pack in the body of a request to the handler.
func (b packBody) receive(c huma.Context, next func(huma.Context)) {
	r, _ := humago.Unwrap(c)
	body := bufio.NewReader(r.Body)
	first, _ := body.Peek(2) // the error comes again
	if b == mayBe && !jobpack.Is(first) {
		r.Body = struct {
			io.Reader
			io.Closer
		}{body, r.Body}
		next(c)
		return
	}
	p := &receivedPack{}
	f, err := os.CreateTemp("", "sluice-pack-")
	if err == nil {
		_ = os.Remove(f.Name()) // where the system lets it go without a name
		defer func() {
			_ = f.Close() // nobody reads it any more
			_ = os.Remove(f.Name())
		}()
		p.content, err = spool(f, body, r.ContentLength)
	}
	p.err = err
	r.Body = io.NopCloser(bytes.NewReader(first))
	r.Header.Del("Content-Type")
	next(huma.WithValue(c, packKey{}, p))
}

// spool writes a body of so many bytes, if that is known, into a file.
func spool(f *os.File, body io.Reader, length int64) (*io.SectionReader, error) {
	var n int64
	if length <= jobpack.MaxSize {
		var err error
		if n, err = io.Copy(f, io.LimitReader(body, jobpack.MaxSize+1)); err != nil {
			if known := new(api.Problem); errors.As(err, &known) { // it is no gzip
				return nil, known
			}
			return nil, api.Invalid("body: the job pack cannot be read: %v", err)
		}
	}
	if length > jobpack.MaxSize || n > jobpack.MaxSize {
		_, _ = io.CopyN(io.Discard, body, drained) // whatever comes of it
		return nil, api.NewProblem(http.StatusRequestEntityTooLarge, api.CodeTooLarge,
			"the job pack has more than %d MiB; let workers fetch large data by URLs", jobpack.MaxSize>>20)
	}
	return io.NewSectionReader(f, 0, n), nil
}

// read reads the pack as a plan.
func (r *receivedPack) read() (*planFile, error) {
	if r.err != nil {
		return nil, r.err
	}
	p, err := jobpack.Read(r.content, r.content.Size())
	if err != nil {
		return nil, api.InvalidAt("body", "%v", err)
	}
	spec, err := p.Spec(nil)
	if err != nil {
		return nil, api.InvalidAt("body", "%v", err)
	}
	file := &planFile{spec: spec, pack: &submit.Pack{Content: p.Content(), MaxTasks: p.MaxTasks()}}
	for _, note := range p.Notes() {
		file.notes = append(file.notes, api.Note{Message: note})
	}
	return file, nil
}

// putPack keeps the job pack of a plan that is being submitted.
func (a *API) putPack(ctx context.Context, in *struct{ ByPlanID }) (*struct{}, error) {
	p := packOf(ctx)
	if p.err != nil {
		return nil, p.err
	}
	packs, ok := a.st.(store.Packs)
	if !ok {
		return nil, api.NewProblem(http.StatusNotImplemented, api.CodeUnsupported, "this store keeps no job packs")
	}
	return &struct{}{}, packs.PutPack(ctx, in.Plan, p.content)
}

// packSchema describes a body that is a job pack.
func packSchema() map[string]*huma.MediaType {
	return map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{
		Type: huma.TypeString, Format: "binary", Description: "A job pack of Disco, of at most 256 MiB.",
	}}}
}
