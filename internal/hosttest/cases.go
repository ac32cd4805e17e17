package hosttest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/plugins/disco/host"
)

// A Case is one thing that a host has to do.
type Case struct {
	Number  int
	Name    string
	Lines   []string // of the inputs, as host.Feed reads them, at the beginning
	Later   []string // lines of which the worker has one added each time it calls More
	Open    bool     // the list is not completed when all lines are in
	Play    func(w *Worker)
	End     host.End
	Detail  []string      // texts that the detail holds
	Outputs string        // as JSON, of a worker that is done; without it they do not matter
	Process bool          // it needs a process
	Over    time.Duration // the attempt takes at least so long with the usual settings
	Times   host.Settings // of Settings, where these are not the usual ones
}

// Settings are the limits of a case that is played by a process: short where the case waits for their
// end, and the usual ones where a slow machine must not reach them.
func (c *Case) Settings() host.Settings {
	s := c.Times
	if s.Quiet == 0 {
		s.Quiet = 500 * time.Millisecond
	}
	s.Hold = 10 * time.Millisecond
	return s
}

// soon is a limit that a case waits for.
const soon = 500 * time.Millisecond

var two = []string{`{"label":0,"urls":["http://a/0","http://b/0"]}`, `{"label":7,"urls":["disco://c/disco/1"]}`}

const (
	row0 = `[0,"ok",0,[[0,"http://a/0"],[1,"http://b/0"]]]`
	row1 = `[1,"ok",7,[[0,"disco://c/disco/1"]]]`
)

// bad returns a play of a frame that is wrong.
func bad(text string) func(w *Worker) {
	return func(w *Worker) { w.Hello(); w.Raw(text); w.Stay() }
}

// refused returns a play of a message that ends the attempt as fatal, without a reply.
func refused(name, body string) func(w *Worker) {
	return func(w *Worker) { w.Hello(); w.Send(name, body); w.Stay() }
}

// asks returns a play of messages and replies in turn, after which the worker is done.
func asks(pairs ...string) func(w *Worker) {
	return func(w *Worker) {
		w.Hello()
		for i := 0; i < len(pairs); i += 2 {
			w.Raw(pairs[i])
			w.Want(pairs[i+1])
		}
		w.Done()
	}
}

// Cases returns all cases. Their numbers stay when others are added.
func Cases() []Case {
	cases := []Case{
		// Frames.
		{Number: 1, Name: "a worker that greets and is done", Play: asks(), End: host.Done, Outputs: "[]"},
		{Number: 2, Name: "a message may come byte by byte", End: host.Done, Play: func(w *Worker) {
			for _, b := range Frame("WORKER", hello) {
				w.Raw(string(b))
			}
			w.Want(ok)
			w.Done()
		}},
		{Number: 3, Name: "the length counts bytes, not characters", End: host.Done, Play: asks("MSG 6 \"äö\"\n", ok)},
		{Number: 4, Name: "a length may have a sign and zeros", End: host.Done, Play: asks("PING +2 \"\"\n", ok, "PING 0002 \"\"\n", ok)},
		{Number: 5, Name: "a length of minus zero is none, and no JSON", End: host.Fatal, Detail: []string{"not valid JSON"}, Play: bad("PING -0 \n")},
		{Number: 6, Name: "a negative length", End: host.Error, Detail: []string{"invalid_length", "Last words: PING -1"}, Play: bad("PING -1 \"\"\n")},
		{Number: 7, Name: "a length that is no number", End: host.Error, Detail: []string{"invalid_length"}, Play: bad("PING 2x \"\"\n")},
		{Number: 8, Name: "a length with a space before it", End: host.Error, Detail: []string{"invalid_length"}, Play: bad("PING  2 \"\"\n")},
		{Number: 9, Name: "a length of more than ten bytes", End: host.Error, Detail: []string{"invalid_length"}, Play: bad("PING 00000000002 \"\"\n")},
		{Number: 10, Name: "a name of more than ten bytes", End: host.Error, Detail: []string{"invalid_type", "Last words: HelloWorld!"}, Play: bad("HelloWorld! 2 \"\"\n")},
		{Number: 11, Name: "a name of ten bytes is a name", End: host.Fatal, Detail: []string{`"HelloWorld"`}, Play: bad("HelloWorld 2 \"\"\n")},
		{Number: 12, Name: "a space at the beginning belongs to the name", End: host.Fatal, Detail: []string{`" PING"`}, Play: bad(" PING 2 \"\"\n")},
		{Number: 13, Name: "more than 100 MiB are refused with the length", End: host.Error, Detail: []string{"message_too_big"}, Play: bad("MSG 104857601 ")},
		{Number: 14, Name: "a body without a newline after it", End: host.Error, Detail: []string{"invalid_body"}, Play: bad("PING 2 \"\"PING 2 \"\"\n")},
		{Number: 15, Name: "a body with CR and newline after it", End: host.Error, Detail: []string{"invalid_body"}, Play: bad("PING 2 \"\"\r\n")},
		{Number: 16, Name: "last words are read until the worker is quiet", End: host.Error, Over: 10 * time.Second, Times: host.Settings{Quiet: 5 * time.Second},
			Detail: []string{"invalid_length", "Worker died. Last words: Traceback (most recent call last):\nand more"}, Play: func(w *Worker) {
				w.Hello()
				w.Raw("Traceback (most recent call last):\n")
				w.Pause(20 * time.Millisecond)
				w.Raw("and more\n")
				w.Stay()
			}},
		{Number: 17, Name: "last words end with the worker", End: host.Error, Detail: []string{"Last words: Traceback, then gone"}, Play: func(w *Worker) {
			w.Hello()
			w.Raw("Traceback, then gone\n")
			w.Exit(1)
		}},
		{Number: 18, Name: "last words have at most 100 KiB", End: host.Error, Detail: []string{"invalid_type", "xxx..."}, Play: func(w *Worker) {
			w.Hello()
			w.Raw(repeat(110 << 10))
			w.Stay()
		}},
		{Number: 19, Name: "after a wrong frame there is no reply", End: host.Error, Detail: []string{"invalid_length", "PING 2"}, Play: bad("PING x \"\"\nPING 2 \"\"\n")},
		{Number: 20, Name: "ten bytes without a space wait for the eleventh", End: host.Error, Times: host.Settings{Within: soon}, Over: 30 * time.Second, Detail: []string{"stuck in the middle of a message"}, Play: bad("HelloWorld")},
		{Number: 21, Name: "an empty body is no JSON", End: host.Fatal, Detail: []string{"not valid JSON"}, Play: bad("PING 0 \n")},
		{Number: 22, Name: "a large message is read", End: host.Done, Play: func(w *Worker) {
			w.Hello()
			w.Ask("MSG", `"`+repeat(3<<20)+`"`, ok)
			w.Ask("MSG", `"`+repeat(2<<20)+`"`, ok)
			w.Done()
		}},

		// The order of judgement.
		{Number: 23, Name: "JSON is judged before the name", End: host.Fatal, Detail: []string{"not valid JSON", "NOSUCH"}, Play: refused("NOSUCH", "{")},
		{Number: 24, Name: "the name is judged before the type of the payload", End: host.Fatal, Detail: []string{"Unknown message type", "NOSUCH"}, Play: refused("NOSUCH", "3")},
		{Number: 25, Name: "the frame is judged before JSON", End: host.Error, Detail: []string{"invalid_body"}, Play: bad("PING 1 {}\n")},
		{Number: 26, Name: "names are in upper case", End: host.Fatal, Detail: []string{"Unknown message type"}, Play: refused("ping", `""`)},
		{Number: 27, Name: "a payload in Latin-1 is no JSON", End: host.Fatal, Detail: []string{"not valid JSON"}, Play: refused("MSG", "\"\xe4\"")},
		{Number: 28, Name: "deeply nested JSON is refused", End: host.Fatal, Detail: []string{"not valid JSON"}, Play: refused("PING", strings.Repeat("[", 1<<20)+strings.Repeat("]", 1<<20))},
		{Number: 29, Name: "two JSON values are no JSON", End: host.Fatal, Detail: []string{"not valid JSON"}, Play: refused("MSG", `"a" "b"`)},
		{Number: 30, Name: "blanks around a payload do not matter", End: host.Done, Play: asks(Frame("MSG", " \"a\"\t"), ok)},

		// WORKER.
		{Number: 31, Name: "another version", End: host.Fatal, Detail: []string{"Invalid worker version", `"1.0"`}, Play: func(w *Worker) {
			w.Send("WORKER", `{"version":"1.0","pid":1}`)
			w.Stay()
		}},
		{Number: 32, Name: "no version", End: host.Fatal, Detail: []string{"Invalid message body"}, Play: refused("WORKER", `{"pid":1}`)},
		{Number: 33, Name: "no pid", End: host.Fatal, Detail: []string{"Invalid message body"}, Play: refused("WORKER", `{"version":"1.1"}`)},
		{Number: 34, Name: "a pid that is no integer", End: host.Fatal, Detail: []string{"Invalid message body"}, Play: refused("WORKER", `{"version":"1.1","pid":1.0}`)},
		{Number: 35, Name: "WORKER may have more keys, in any order, and come again", End: host.Done,
			Play: asks(Frame("WORKER", `{"x":[1,{"y":"]"}],"pid":12,"version":"1\u002e1","z":null}`), ok)},
		{Number: 36, Name: "nothing says that WORKER comes first", End: host.Done, Play: func(w *Worker) {
			w.Ask("PING", `""`, ok)
			w.Hello()
			w.Done()
		}},

		// TASK.
		{Number: 37, Name: "TASK has twelve keys", End: host.Done, Play: func(w *Worker) {
			w.Hello()
			w.Send("TASK", `""`)
			name, body := w.Next()
			var task map[string]any
			if err := json.Unmarshal([]byte(body), &task); err != nil || name != "TASK" || len(task) != 12 {
				w.Fail("the reply to TASK is " + name + " " + body)
			}
			for _, key := range []string{"host", "master", "jobname", "stage", "grouping", "disco_data", "ddfs_data", "jobfile"} {
				if _, is := task[key].(string); !is {
					w.Fail("TASK has no text " + key + ": " + body)
				}
			}
			for _, key := range []string{"taskid", "disco_port", "put_port"} {
				if _, is := task[key].(float64); !is {
					w.Fail("TASK has no number " + key + ": " + body)
				}
			}
			if group, is := task["group"].([]any); !is || len(group) != 2 {
				w.Fail("TASK has no group: " + body)
			}
			w.Done()
		}},
		{Number: 38, Name: "TASK needs a text", End: host.Fatal, Detail: []string{"Invalid message body"}, Play: refused("TASK", `{}`)},
		{Number: 39, Name: "any text will do for TASK, and any number of times", End: host.Done, Play: func(w *Worker) {
			w.Hello()
			w.Send("TASK", `"x"`)
			_, first := w.Next()
			w.Send("TASK", `""`)
			if _, second := w.Next(); first != second {
				w.Fail("TASK is " + first + ", and then " + second)
			}
			w.Done()
		}},

		// INPUT.
		{Number: 40, Name: "INPUT without inputs", End: host.Done, Play: asks(Frame("INPUT", `""`), input(`["done",[]]`))},
		{Number: 41, Name: "INPUT has each input with its replicas", Lines: two, End: host.Done, Play: asks(Frame("INPUT", `""`), input(`["done",[`+row0+`,`+row1+`]]`))},
		{Number: 42, Name: "the label all is a text", Lines: []string{`{"label":"all","urls":["raw://x"]}`}, End: host.Done,
			Play: asks(Frame("INPUT", `""`), input(`["done",[[0,"ok","all",[[0,"raw://x"]]]]]`))},
		{Number: 43, Name: "replies are pure ASCII", Lines: []string{`{"urls":["raw://\u00e4\ud83d\ude00\"\\\u007f"]}`}, End: host.Done,
			Play: asks(Frame("INPUT", `""`), input(`["done",[[0,"ok",0,[[0,"raw://\u00e4\ud83d\ude00\"\\\u007f"]]]]]`))},
		{Number: 44, Name: "include keeps the order that was asked, and an unknown id has no replicas", Lines: two, End: host.Done,
			Play: asks(Frame("INPUT", `["include",[1,9,0]]`), input(`["done",[`+row1+`,[9,"ok",0,[]],`+row0+`]]`))},
		{Number: 45, Name: "exclude leaves inputs out", Lines: two, End: host.Done, Play: asks(Frame("INPUT", ` [ "exclude" , [ 0, 17, -3 ] ] `), input(`["done",[`+row1+`]]`))},
		{Number: 46, Name: "excluding everything leaves nothing", Lines: two, End: host.Done, Play: asks(Frame("INPUT", `["exclude",[1,0]]`), input(`["done",[]]`))},
		{Number: 47, Name: "INPUT with another word", End: host.Fatal, Detail: []string{"Invalid message body"}, Play: refused("INPUT", `["only",[1]]`)},
		{Number: 48, Name: "INPUT with a text", End: host.Fatal, Detail: []string{"Invalid message body"}, Play: refused("INPUT", `"x"`)},
		{Number: 49, Name: "ids are integers", End: host.Fatal, Detail: []string{"Invalid message body"}, Play: refused("INPUT", `["include",[1,2.0]]`)},
		{Number: 50, Name: "more inputs may come", Lines: two[:1], Later: []string{two[1], ""}, End: host.Done, Play: func(w *Worker) {
			w.Hello()
			w.Ask("INPUT", `""`, input(`["more",[`+row0+`]]`))
			w.More()
			w.Ask("INPUT", `["exclude",[0]]`, input(`["more",[`+row1+`]]`))
			w.More()
			w.Ask("INPUT", `["exclude",[0,1]]`, input(`["done",[]]`))
			w.Done()
		}},
		{Number: 51, Name: "INPUT with nothing new waits, and what is behind it too", Later: []string{two[0]}, Open: true, End: host.Done, Play: func(w *Worker) {
			w.Hello()
			w.Raw(Frame("MSG", `"`+More+`"`) + Frame("INPUT", `""`) + Frame("PING", `""`))
			w.Want(ok + input(`["more",[`+row0+`]]`) + ok)
			w.Done()
		}},
		{Number: 52, Name: "a worker that dies while INPUT waits, with a DONE behind it", Open: true, End: host.Error, Detail: []string{"Worker died"}, Process: true, Play: func(w *Worker) {
			w.Hello()
			w.Raw(Frame("INPUT", `""`) + Frame("DONE", `""`))
			w.Exit(0)
		}},

		// INPUT_ERR.
		{Number: 53, Name: "a failed replica is replaced by the others", Lines: two, End: host.Done, Detail: []string{"input 0: http://a/0"},
			Play: asks(Frame("INPUT_ERR", `[0,[0]]`), retry(`[[1,"http://b/0"]]`))},
		{Number: 54, Name: "without others there is FAIL", Lines: two, End: host.Done, Detail: []string{"input 1: disco://c/disco/1"},
			Play: asks(Frame("INPUT_ERR", `[1,[0]]`), "FAIL 2 \"\"\n")},
		{Number: 55, Name: "an unknown input has FAIL", Lines: two, End: host.Done, Play: asks(Frame("INPUT_ERR", `[5,[0]]`), "FAIL 2 \"\"\n")},
		{Number: 56, Name: "an earlier failure comes back, and failed replicas go to the end", Lines: two, End: host.Done, Play: asks(
			Frame("INPUT_ERR", `[0,[0]]`), retry(`[[1,"http://b/0"]]`),
			Frame("INPUT_ERR", `[0,[1]]`), retry(`[[0,"http://a/0"]]`),
			Frame("INPUT_ERR", `[0,[0]]`), retry(`[[1,"http://b/0"]]`),
			Frame("INPUT", `["include",[0]]`), input(`["done",[[0,"ok",0,[[1,"http://b/0"],[0,"http://a/0"]]]]]`))},
		{Number: 57, Name: "all replicas failed: FAIL", Lines: two, End: host.Done, Play: asks(Frame("INPUT_ERR", `[0,[1,0]]`), "FAIL 2 \"\"\n")},
		{Number: 58, Name: "no replica failed: RETRY has all", Lines: two, End: host.Done, Play: asks(Frame("INPUT_ERR", `[0,[]]`), retry(`[[0,"http://a/0"],[1,"http://b/0"]]`))},
		{Number: 59, Name: "unknown replicas do not count", Lines: two, End: host.Done, Play: asks(Frame("INPUT_ERR", `[0,[4,-1,99999999999999999999]]`), retry(`[[0,"http://a/0"],[1,"http://b/0"]]`))},
		{Number: 60, Name: "while a replica is being made there is WAIT, longer each time", Lines: append(two[:2:2], `{"input":1,"busy":true}`, two[0]), Later: []string{`{"input":1,"urls":["http://d/1"]}`}, End: host.Done, Play: func(w *Worker) {
			w.Hello()
			for listed := 0; listed < 3; { // what is read after the busy one
				w.Send("INPUT", `""`)
				_, body := w.Next()
				listed = strings.Count(body, `"ok"`)
			}
			for _, wait := range []string{"1", "2", "4", "8", "10", "10"} {
				w.Ask("INPUT_ERR", `[1,[0]]`, Frame("WAIT", wait))
			}
			w.More()
			name, body := "WAIT", ""
			for name == "WAIT" { // until it is read
				w.Send("INPUT_ERR", `[1,[0]]`)
				name, body = w.Next()
			}
			if name != "RETRY" || body != `[[1,"http://d/1"]]` {
				w.Fail("the reply is " + name + " " + body)
			}
			w.Ask("INPUT_ERR", `[1,[1,0]]`, "FAIL 2 \"\"\n")
			w.Done()
		}},
		{Number: 61, Name: "INPUT_ERR with a text", End: host.Fatal, Detail: []string{"Invalid message body"}, Play: refused("INPUT_ERR", `"x"`)},
		{Number: 62, Name: "INPUT_ERR without replicas", End: host.Fatal, Detail: []string{"Invalid message body"}, Play: refused("INPUT_ERR", `[1]`)},

		// MSG.
		{Number: 63, Name: "MSG needs a text", End: host.Fatal, Detail: []string{"Invalid message body"}, Play: refused("MSG", `["a"]`)},
		{Number: 64, Name: "a flood of MSG is slowed, and not fatal", End: host.Done, Over: 15 * 200 * time.Millisecond, Play: func(w *Worker) {
			w.Hello()
			w.Raw(strings.Repeat(Frame("MSG", `"a"`), 20))
			w.Want(strings.Repeat(ok, 20))
			w.Done()
		}},

		// OUTPUT.
		{Number: 65, Name: "an output in the job home has the size that it has", End: host.Done, Process: true, Outputs: `[[3,"*/sub/out",5]]`, Play: func(w *Worker) {
			w.Hello()
			w.WriteFile("sub/out", "hello")
			w.Ask("OUTPUT", `[3,"sub/out",77]`, ok)
			w.Done()
		}},
		{Number: 66, Name: "an output elsewhere is kept as it is", End: host.Done, Outputs: `[[0,"http://a/b",7]]`, Play: asks(Frame("OUTPUT", `[0,"http://a/b",7]`), ok)},
		{Number: 67, Name: "an output with an absolute path", End: host.Error, Process: true, Detail: []string{"/etc/passwd"}, Play: refused("OUTPUT", `[0,"/etc/passwd",1]`)},
		{Number: 68, Name: "an output that leaves the job home", End: host.Error, Process: true, Detail: []string{"../out"}, Play: refused("OUTPUT", `[0,"../out",1]`)},
		{Number: 69, Name: "an output that is not there", End: host.Error, Process: true, Detail: []string{"nosuch"}, Play: refused("OUTPUT", `[0,"nosuch",1]`)},
		{Number: 70, Name: "an output whose label is no integer", End: host.Fatal, Detail: []string{"Invalid message body"}, Play: refused("OUTPUT", `["0","x",1]`)},
		{Number: 71, Name: "an output without a size", End: host.Fatal, Detail: []string{"Invalid message body"}, Play: refused("OUTPUT", `[0,"x"]`)},
		{Number: 96, Name: "an output whose label is too large", End: host.Error, Detail: []string{"label 2147483648: a label is an integer from 0 to 2147483647"}, Play: refused("OUTPUT", `[2147483648,"http://a/b",1]`)},
		{Number: 97, Name: "an output with the label of all", End: host.Done, Outputs: `[[-1,"http://a/b",7]]`, Play: asks(Frame("OUTPUT", `[-1,"http://a/b",7]`), ok)},

		// The ends.
		{Number: 72, Name: "DONE needs a text", End: host.Fatal, Detail: []string{"Invalid message body"}, Play: refused("DONE", `1`)},
		{Number: 73, Name: "ERROR has its text in the detail, and is answered", End: host.Error, Detail: []string{"no disk\nleft: ä"}, Play: func(w *Worker) {
			w.Hello()
			w.Ask("ERROR", `"no disk\nleft: \u00e4"`, ok)
			w.Stay()
		}},
		{Number: 74, Name: "FATAL has its text in the detail, and is answered", End: host.Fatal, Detail: []string{"broken input"}, Play: func(w *Worker) {
			w.Hello()
			w.Ask("FATAL", `"broken input"`, ok)
			w.Stay()
		}},
		{Number: 75, Name: "ERROR needs a text", End: host.Fatal, Detail: []string{"Invalid message body"}, Play: refused("ERROR", `{}`)},
		{Number: 76, Name: "an exit without DONE", End: host.Error, Detail: []string{"Worker died without output"}, Play: func(w *Worker) { w.Hello(); w.Exit(0) }},
		{Number: 77, Name: "an exit with a status", End: host.Error, Process: true, Detail: []string{"exit status 3", "Worker died without output"}, Play: func(w *Worker) { w.Hello(); w.Exit(3) }},
		{Number: 78, Name: "a death by a signal", End: host.Error, Process: true, Detail: []string{"SIGKILL"}, Play: func(w *Worker) { w.Hello(); w.Kill() }},
		{Number: 79, Name: "an exit in the middle of a message", End: host.Error, Detail: []string{"Worker died. Last words: MSG 10 \"ab"}, Play: func(w *Worker) { w.Hello(); w.Raw("MSG 10 \"ab"); w.Exit(0) }},
		{Number: 80, Name: "an exit at once", End: host.Error, Detail: []string{"Worker died without output"}, Play: func(w *Worker) { w.Exit(0) }},
		{Number: 81, Name: "DONE, and an exit before the reply", End: host.Done, Play: func(w *Worker) { w.Hello(); w.Send("DONE", `""`); w.Exit(7) }},
		{Number: 82, Name: "what comes after DONE is not read", End: host.Done, Play: func(w *Worker) {
			w.Hello()
			w.Raw(Frame("DONE", `""`) + Frame("FATAL", `"no"`))
			w.Stay()
		}},
		{Number: 83, Name: "pipelined messages are answered in order", Lines: two, End: host.Done, Play: func(w *Worker) {
			w.Raw(Frame("WORKER", hello) + Frame("INPUT", `["include",[1]]`) + Frame("PING", `"x"`) + Frame("INPUT_ERR", `[1,[0]]`) + Frame("DONE", `""`))
			w.Want(ok + input(`["done",[`+row1+`]]`) + ok + "FAIL 2 \"\"\n" + ok)
			w.Stay()
		}},
		{Number: 84, Name: "PING takes any payload", End: host.Done, Play: asks(Frame("PING", `{"a":[1,2]}`), ok, Frame("PING", `null`), ok)},

		// Time.
		{Number: 85, Name: "no byte at all", End: host.Error, Times: host.Settings{First: soon}, Over: 30 * time.Second, Detail: []string{"did not send its PID"}, Play: func(w *Worker) { w.Stay() }},
		{Number: 86, Name: "half a message", End: host.Error, Times: host.Settings{Within: soon}, Over: 30 * time.Second, Detail: []string{"stuck in the middle of a message"}, Play: bad("MSG 10 \"ab")},
		{Number: 87, Name: "half a head", End: host.Error, Times: host.Settings{Within: soon}, Over: 30 * time.Second, Detail: []string{"stuck in the middle of a message"}, Play: bad("MSG")},
		{Number: 88, Name: "each byte restarts the clock of a message", End: host.Done, Over: 50 * time.Second, Times: host.Settings{Within: 3 * time.Second}, Play: func(w *Worker) {
			w.Hello()
			for i, b := range Frame("PING", `""`) {
				if w.Raw(string(b)); i%2 == 1 && i < 10 {
					w.Pause(w.Within / 3)
				}
			}
			w.Want(ok)
			w.Done()
		}},
		{Number: 89, Name: "between messages there is no limit", End: host.Done, Over: 60 * time.Second, Times: host.Settings{Within: soon}, Play: func(w *Worker) {
			w.Hello()
			w.Pause(2 * w.Within)
			w.Ask("PING", `""`, ok)
			w.Done()
		}},

		// Processes that are left behind.
		{Number: 90, Name: "DONE, and staying", End: host.Done, Process: true, Play: asks()},
		{Number: 91, Name: "DONE, and ignoring SIGTERM", End: host.Done, Process: true, Play: func(w *Worker) { w.IgnoreTerm(); w.Hello(); w.Done() }},
		{Number: 92, Name: "ERROR, and ignoring SIGTERM", End: host.Error, Process: true, Detail: []string{"no"}, Play: func(w *Worker) {
			w.IgnoreTerm()
			w.Hello()
			w.Ask("ERROR", `"no"`, ok)
			w.Stay()
		}},
		{Number: 93, Name: "a child that holds the streams", End: host.Error, Process: true, Detail: []string{"exit status 5"}, Play: func(w *Worker) { w.Child(); w.Hello(); w.Exit(5) }},
		{Number: 94, Name: "DONE with a child behind", End: host.Done, Process: true, Play: func(w *Worker) { w.Child(); w.Hello(); w.Done() }},
		{Number: 95, Name: "an end of input does not undo DONE", End: host.Done, Process: true, Play: func(w *Worker) {
			w.IgnoreTerm()
			w.Hello()
			w.Ask("DONE", `""`, ok)
			w.Raw(Frame("ERROR", `"end of input"`))
			w.Exit(1)
		}},
	}
	return cases
}
