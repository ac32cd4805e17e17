package host

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxReply is the most bytes of a reply.
const MaxReply = 24 << 20

// ok is the reply to all that needs no other.
var okReply = []byte("OK 4 \"ok\"\n")

// failReply says that no replica of an input is left.
var failReply = []byte("FAIL 2 \"\"\n")

// appendText writes a string as JSON in ASCII. Workers of the Python library count the characters of
// a reply instead of its bytes, and wait for ever behind any other one.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c == 0x7f:
			b = appendUnit(b, uint16(c))
		case c < utf8.RuneSelf:
			b = append(b, c)
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			i += size
			if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
				b = appendUnit(appendUnit(b, uint16(high)), uint16(low))
			} else {
				b = appendUnit(b, uint16(r))
			}
			continue
		}
		i++
	}
	return append(b, '"')
}

func appendUnit(b []byte, u uint16) []byte {
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', hex[u>>12], hex[u>>8&15], hex[u>>4&15], hex[u&15])
}

// appendHead writes what goes before a body of that length.
func appendHead(b []byte, name string, length int) []byte {
	b = append(append(b, name...), ' ')
	return append(strconv.AppendInt(b, int64(length), 10), ' ')
}

// message writes a whole small message.
func message(name string, body []byte) []byte {
	b := appendHead(make([]byte, 0, longestHead+len(body)+1), name, len(body))
	return append(append(b, body...), '\n')
}

// A Task is what the worker learns of its task.
type Task struct {
	ID        int64  // of the task, within its job
	JobName   string // the job
	JobFile   string // the path of the job pack
	Host      string // the name of this host in URLs
	Master    string // a URL with DiscoPort in it
	DiscoPort int    // where the files of a host are served
	PutPort   int
	DiscoData string // the folder that disco://HOST/disco/ stands for
	DDFSData  string
	Stage     string
	Grouping  string
	Label     int64  // of the group
	GroupHost string // of the group; "" is none
}

// reply is the answer to TASK.
func (t *Task) reply() []byte {
	b := []byte(`{"taskid":`)
	b = strconv.AppendInt(b, t.ID, 10)
	for _, f := range []struct{ key, value string }{
		{"jobname", t.JobName}, {"jobfile", t.JobFile}, {"host", t.Host}, {"master", t.Master}, {"disco_data", t.DiscoData},
		{"ddfs_data", t.DDFSData}, {"stage", t.Stage}, {"grouping", t.Grouping},
	} {
		b = append(b, `,"`+f.key+`":`...)
		b = appendText(b, f.value)
	}
	b = strconv.AppendInt(append(b, `,"disco_port":`...), int64(t.DiscoPort), 10)
	b = strconv.AppendInt(append(b, `,"put_port":`...), int64(t.PutPort), 10)
	b = strconv.AppendInt(append(b, `,"group":[`...), t.Label, 10)
	b = append(appendText(append(b, ','), t.GroupHost), "]}"...)
	return message("TASK", b)
}
