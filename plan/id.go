package plan

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync/atomic"
	"time"
)

// An ID is 12 bytes, written as 24 lower-case hex digits. As in a MongoDB ObjectId, these are
// seconds since 1970, five random bytes from the start of the process, and a counter. IDs that one
// process makes ascend. The zero ID means "none".
type ID [12]byte

// TaskID, PlanID, QueueID, InstanceID and ScheduleID keep one kind of thing from being taken for another.
type (
	TaskID     struct{ ID }
	PlanID     struct{ ID }
	QueueID    struct{ ID }
	InstanceID struct{ ID }
	ScheduleID struct{ ID }
)

var (
	idProcess [5]byte
	idCounter atomic.Uint32
)

func init() {
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // crypto/rand never fails: it ends the process instead
	copy(idProcess[:], seed[:5])
	// Starting low leaves room for 16 million ids before the counter wraps within a second.
	idCounter.Store(uint32(seed[5])<<8 | uint32(seed[6]))
}

// NewID mints an ID at the given time. Any number of goroutines may call it at once.
func NewID(at time.Time) ID { return NewIDs(at, 1).next() }

// IDs is a run of ids minted together, so that they ascend without a gap whatever other goroutines mint.
type IDs struct {
	process [5]byte
	second  uint32
	count   uint32
}

// NewIDs reserves n ids at the given time.
func NewIDs(at time.Time, n int) *IDs {
	return &IDs{process: idProcess, second: uint32(at.Unix()), count: idCounter.Add(uint32(n)) - uint32(n)}
}

// SameIDs is a run of ids that somebody reserved, whose first was this one.
func SameIDs(first ID) *IDs {
	before := (uint32(first[9])<<16 | uint32(first[10])<<8 | uint32(first[11])) - 1
	return &IDs{process: [5]byte(first[4:9]), second: binary.BigEndian.Uint32(first[0:4]), count: before}
}

// Next returns the next of the reserved ids.
func (s *IDs) Next() ID { return s.next() }

func (s *IDs) next() ID {
	s.count++
	var id ID
	// The counter has three bytes; what overflows goes into the seconds, so that a long run still ascends.
	binary.BigEndian.PutUint32(id[0:4], s.second+s.count>>24)
	copy(id[4:9], s.process[:])
	id[9], id[10], id[11] = byte(s.count>>16), byte(s.count>>8), byte(s.count)
	return id
}

// ParseID reads 24 hex digits.
func ParseID(s string) (ID, error) {
	var id ID
	return id, id.UnmarshalText([]byte(s))
}

// IsZero reports whether the id is none.
func (id ID) IsZero() bool { return id == ID{} }

// String returns the id as 24 hex digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Time returns when the id was minted, to the second.
func (id ID) Time() time.Time { return time.Unix(int64(binary.BigEndian.Uint32(id[0:4])), 0) }

// MarshalText writes the id as 24 hex digits, and the zero id as nothing.
func (id ID) MarshalText() ([]byte, error) {
	if id.IsZero() {
		return nil, nil
	}
	return hex.AppendEncode(nil, id[:]), nil
}

// UnmarshalText reads what MarshalText writes.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*id = ID{}
		return nil
	}
	if len(text) != 24 {
		return fmt.Errorf("%q is not an id: it has 24 hex digits", text)
	}
	if _, err := hex.Decode(id[:], text); err != nil {
		return fmt.Errorf("%q is not an id: it has 24 hex digits", text)
	}
	return nil
}
