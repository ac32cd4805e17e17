// Package jobpack owns the format of Disco's job packs, versions 1 and 2: what a job runs, and the
// archive of the folder that it runs in. It reads packs that anybody may have sent, and makes packs.
//
// A pack is a header of 128 bytes and four parts, each up to the next one:
//
//	jobdict  JSON: the worker, the stages and the inputs
//	jobenvs  JSON: environment variables of the worker
//	jobhome  a zip of the folder that the worker runs in, with the worker in it
//	jobdata  anything that the worker reads
//
// The header has, in big-endian order, the magic number 0xd5c0 and the version of 16 bits each, and the
// offsets of the parts of 32 bits each.
package jobpack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/seed-1177d267/sluice/internal/rules"
)

// The bounds of a pack.
const (
	MaxSize  = rules.MaxPack // bytes of a pack
	MaxHome  = 1 << 30       // bytes of the files in the job home
	MaxFiles = 100_000       // files and folders in the job home
	MaxLabel = 1<<31 - 1     // the largest label of an input
)

const (
	magic      = 0xd5c0
	headerSize = 128
	maxJSON    = 32 << 20 // bytes of jobdict, and of jobenvs
)

// ErrTooLarge means that a pack has more than MaxSize bytes.
var ErrTooLarge = errors.New("the job pack is too large")

// A Pack is what a job pack says.
type Pack struct {
	Version     int
	Prefix      string // what the name of the job begins with
	Owner       string // for people; may be empty
	Worker      string // the path of the program in the job home, with slashes
	Envs        map[string]string
	Stages      []Stage // in the order in which they run; those of version 1 follow from its map and reduce
	Inputs      []Input // of the first stage
	MaxCores    int     // how many of its tasks may run at once; 0: any number
	SaveResults bool    // the job wants its results in DDFS

	home        *home
	whole, data *io.SectionReader
}

// A Stage is a stage of the pipeline.
type Stage struct {
	Name       string
	Grouping   string // one of rules.Groupings
	Concurrent bool   // it may begin before the stage before has ended
}

// An Input is an input of the job. Its URLs are replicas of the same content.
type Input struct {
	Label int // from 0 to MaxLabel, or AllLabels
	Size  int64
	URLs  []string
}

// AllLabels is the label of an input that has an index of many labels.
const AllLabels = -1

// Is reports whether a text that begins with these bytes is meant as a job pack.
func Is(first []byte) bool {
	return len(first) >= 2 && binary.BigEndian.Uint16(first) == magic
}

// Read reads a pack of so many bytes and checks all of it but the contents of its files, which Unpack
// checks. The pack reads from r as long as it is used. An error names the part and the remedy.
func Read(r io.ReaderAt, size int64) (*Pack, error) {
	if size > MaxSize {
		return nil, fmt.Errorf("%w: it has %d bytes, and at most %d MiB are taken: let workers fetch large data by URLs", ErrTooLarge, size, MaxSize>>20)
	}
	parts, version, err := readHeader(r, size)
	if err != nil {
		return nil, fmt.Errorf("job pack: header: %w", err)
	}
	p := &Pack{Version: version, whole: io.NewSectionReader(r, 0, size), data: parts[3]}
	if err := p.readDict(parts[0]); err != nil {
		return nil, fmt.Errorf("job pack: jobdict: %w", err)
	}
	if err := p.readEnvs(parts[1]); err != nil {
		return nil, fmt.Errorf("job pack: jobenvs: %w", err)
	}
	if p.home, err = readHome(parts[2], p.Worker); err != nil {
		return nil, fmt.Errorf("job pack: jobhome: %w", err)
	}
	return p, nil
}

// Data returns the part for the worker.
func (p *Pack) Data() *io.SectionReader { return io.NewSectionReader(p.data, 0, p.data.Size()) }

// Content returns the pack itself.
func (p *Pack) Content() *io.SectionReader { return io.NewSectionReader(p.whole, 0, p.whole.Size()) }

// partNames are those of the four parts, in order.
var partNames = [...]string{"jobdict", "jobenvs", "jobhome", "jobdata"}

func readHeader(r io.ReaderAt, size int64) (parts [4]*io.SectionReader, version int, err error) {
	var header [headerSize]byte
	if size < headerSize {
		return parts, 0, fmt.Errorf("the pack has %d bytes, and its header alone has %d; send all of it", size, headerSize)
	}
	if _, err := r.ReadAt(header[:], 0); err != nil && err != io.EOF {
		return parts, 0, err
	}
	if !Is(header[:]) {
		return parts, 0, fmt.Errorf("it begins with %#04x, and a job pack with %#04x; send what makes job packs, as jobpack or disco job, wrote",
			binary.BigEndian.Uint16(header[:]), magic)
	}
	if version = int(binary.BigEndian.Uint16(header[2:])); version != 1 && version != 2 {
		return parts, 0, fmt.Errorf("version %d is not known; make a pack of version 1 or 2", version)
	}
	var offsets [5]int64
	for i := range parts {
		offsets[i] = int64(binary.BigEndian.Uint32(header[4+4*i:]))
	}
	offsets[4] = size
	if offsets[0] != headerSize {
		return parts, 0, fmt.Errorf("jobdict begins at byte %d, and not behind the header, at %d; make the pack again", offsets[0], headerSize)
	}
	for i := range parts {
		switch next := offsets[i+1]; {
		case next > size:
			return parts, 0, fmt.Errorf("%s begins at byte %d, and the pack has %d; the pack is cut: send all of it", partNames[i+1], next, size)
		case next < offsets[i] && i == 3:
			return parts, 0, fmt.Errorf("jobdata begins at byte %d, and the pack has %d; the pack is cut: send all of it", offsets[i], size)
		case next < offsets[i]:
			return parts, 0, fmt.Errorf("%s begins at byte %d, before %s at %d; make the pack again", partNames[i+1], next, partNames[i], offsets[i])
		default:
			parts[i] = io.NewSectionReader(r, offsets[i], next-offsets[i])
		}
	}
	return parts, version, nil
}

// Join returns the pack that has these four parts. It checks nothing but their sizes.
func Join(version int, parts [4][]byte) ([]byte, error) {
	size := headerSize
	for _, part := range parts {
		if size += len(part); size > MaxSize {
			return nil, fmt.Errorf("%w: its parts have more than %d MiB", ErrTooLarge, MaxSize>>20)
		}
	}
	b := binary.BigEndian.AppendUint16(make([]byte, 0, size), magic)
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	at := uint32(headerSize)
	for _, part := range parts {
		b = binary.BigEndian.AppendUint32(b, at)
		at += uint32(len(part))
	}
	b = append(b, make([]byte, headerSize-len(b))...)
	return append(b, bytes.Join(parts[:], nil)...), nil
}
