package runner

import (
	"strings"
	"testing"
	"time"
)

func TestTheLineThatTellsWhyACommandFailed(t *testing.T) {
	for name, c := range map[string]struct{ stderr, want string }{
		"nothing":                {"", ""},
		"blank lines":            {"\n \n", ""},
		"the last line":          {"first\nlast\n", "last"},
		"without its newline":    {"first\nlast", "last"},
		"before blank lines":     {"disk full\n\n  \n", "disk full"},
		"a colour":               {"\x1b[31merror:\x1b[0m disk full\x1b[K\n", "error: disk full"},
		"a title of a window":    {"\x1b]0;x\x07disk\tfull\n", "disk full"},
		"a progress bar":         {"10%\r50%\rdisk full\r\n", "disk full"},
		"make":                   {"cc: no such file\nmake[1]: *** [Makefile:3: all] Error 1\nmake: *** [Makefile:9: x] Error 2\n", "cc: no such file"},
		"make alone":             {"make: *** [Makefile:3: all] Error 1\n", "make: *** [Makefile:3: all] Error 1"},
		"make itself":            {"make: *** No rule to make target 'x'.  Stop.\n", "make: *** No rule to make target 'x'.  Stop."},
		"a trace of Python":      {"Traceback (most recent call last):\n  File \"x\", line 1, in <module>\nValueError: bad\n", "ValueError: bad"},
		"a trace of Java":        {"Exception in thread \"main\" a.B: bad\n\tat a.B.c(B.java:3)\n\t... 5 more\n", "Exception in thread \"main\" a.B: bad"},
		"a trace of Node":        {"Error: bad\n    at f (x.js:1:2)\n\nNode.js v22.1.0\n", "Error: bad"},
		"a trace of Go":          {"panic: bad\n\ngoroutine 1 [running]:\nmain.main()\n\t/x.go:5 +0x1d\nexit status 2\n", "panic: bad"},
		"what sh -x tells":       {"disk full\n+ rm -f x\n++ exit 1\n", "disk full"},
		"what a compiler points": {"x.c:1:2: error: bad\n    1 | int\n      |  ^~~\n", "x.c:1:2: error: bad"},
		"a rule":                 {"bad\n-----\n", "bad"},
		"what time tells":        {"bad\n\nreal\t0m0.001s\nuser\t0m0.000s\nsys\t0m0.001s\n", "bad"},
		"a secret":               {"cannot log in with hunter22\n", "cannot log in with ***"},
		"a long line":            {strings.Repeat("é", 40000) + "\n", strings.Repeat("é", mostSaid) + "…"},
		"a line after it":        {strings.Repeat("é", 40000) + "\nbad\n", "bad"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, piece := range []int{len(c.stderr), 7} { // however it is read
				out := NewOutput(0, "hunter22")
				l, other := newLines(out, Stderr), newLines(out, Stdout)
				for at := 0; at < len(c.stderr); at += piece {
					l.write([]byte(c.stderr[at:min(at+piece, len(c.stderr))]), time.Now())
				}
				other.write([]byte("of the other stream\n"), time.Now())
				l.close(time.Now())
				other.close(time.Now())
				if got := out.Said(); got != c.want {
					t.Errorf("it is %q, want %q", got, c.want)
				}
			}
		})
	}
}
