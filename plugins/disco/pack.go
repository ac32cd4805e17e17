package disco

import "encoding/binary"

// emptyPack returns a job pack that a worker can open, with nothing in it: a header of 128 bytes
// with the offsets of its four parts, no job settings, no variables, an archive without files, and
// as data the pickle of (None, {}).
func emptyPack() []byte {
	const header = 128
	parts := [][]byte{
		[]byte("{}"),
		[]byte("{}"),
		append([]byte("PK\x05\x06"), make([]byte, 18)...),
		[]byte("\x80\x02N}\x86."),
	}
	b := binary.BigEndian.AppendUint16(make([]byte, 0, header+64), 0xd5c0)
	b = binary.BigEndian.AppendUint16(b, 1)
	at := uint32(header)
	for _, p := range parts {
		b = binary.BigEndian.AppendUint32(b, at)
		at += uint32(len(p))
	}
	b = append(b, make([]byte, header-len(b))...)
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}
