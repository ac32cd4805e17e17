package protocol

import "fmt"

// GFS says where MongoDB keeps what a task printed: Disbatch's setting gfs. Other stores have one place for it.
type GFS string

// The values of gfs; the zero value is GFSAuto.
const (
	GFSAuto   GFS = "auto"  // in GridFS if it is too large for the task's document; the default
	GFSAlways GFS = "true"  // in GridFS
	GFSNever  GFS = "false" // in the task's document
)

// The output of a task goes with its ending if both streams together have at most maxAlong bytes: a
// turn may have a thousand endings. Its params and its output may then have at most alongOf bytes,
// so that MongoDB has room for all of it. JSON may take seven times the bytes of the output there.
const (
	maxAlong = 16 << 10
	alongOf  = 1 << 20
)

// maxInline is how many bytes of what a task printed lie in its document, as Disbatch has it.
const maxInline = 15 << 20

// Check refuses what is no value of gfs.
func (g GFS) Check() error {
	switch g {
	case "", GFSAuto, GFSAlways, GFSNever:
		return nil
	}
	return fmt.Errorf("gfs is %q; it is one of auto, true, false", string(g))
}

// Files says which of the two streams of a task go into GridFS, by their sizes. The rule is
// Disbatch's. Both streams are in the document if they have at most 15 MiB together. Else the
// standard output goes to GridFS, and the standard error only if it alone has more.
func (g GFS) Files(stdout, stderr int64) (out, err bool) {
	switch g {
	case GFSAlways:
		return true, true
	case GFSNever:
		return false, false
	}
	return stdout+stderr > maxInline, stderr > maxInline
}

// Beside returns the setting for a task that also has an output of so many bytes, which has to lie in the same document.
func (g GFS) Beside(output, stdout, stderr int64) GFS {
	if out, _ := g.Files(stdout+output, stderr); out && output > 0 {
		return GFSAlways
	}
	return g
}

// Along reports whether the two streams go with the ending of their task, whose params and output have so many bytes together, in one write.
// Larger ones are put apart beforehand.
func (g GFS) Along(params, stdout, stderr int64) bool {
	return g != GFSAlways && stdout+stderr <= maxAlong && params <= alongOf
}
