package textfile

import (
	"regexp"
	"strings"
)

// longest is how many bytes a message keeps of a value that it names.
const longest = 200

// A longValue is a quoted text, or a word, that is too long for a message.
var longValue = regexp.MustCompile(`"(?:[^"\\]|\\.){200,}"|[^\s"]{200,}`)

// Brief cuts each value in a message after 200 bytes. A value of a file, or of a request, may have
// megabytes.
func Brief(message string) string {
	if len(message) <= longest {
		return message
	}
	return longValue.ReplaceAllStringFunc(message, func(value string) string {
		text, quoted := strings.CutPrefix(value, `"`)
		if text = strings.TrimSuffix(text, `"`); len(text) <= longest {
			return value
		}
		text = strings.TrimRight(strings.ToValidUTF8(text[:longest], ""), `\`) + "…"
		if quoted {
			return `"` + text + `"`
		}
		return text
	})
}
