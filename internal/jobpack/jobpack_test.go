package jobpack_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/jobpack"
	"github.com/seed-1177d267/sluice/plan"
)

// A dict that is fine, of each version. Packs of goworker and of disco.worker are written like these.
const (
	dict1 = `{"prefix": "gojob", "owner": "a@b", "scheduler": {}, "save_info": "ddfs", "worker": "./job", "nr_reduces": 1, "save_results": false,
		"input": ["http://a/1", ["http://a/2", "http://b/2"], ["dir://n/disco/i"]], "reduce?": true, "map?": true}`
	dict2 = `{"prefix": "count", "save_results": false, "save_info": "ddfs", "scheduler": {"max_cores": 8}, "owner": "a@b", "worker": "lib/worker.py",
		"pipeline": [["map", "split", false], ["shuffle", "group_node", true], ["reduce", "group_label", false]],
		"inputs": [[0, 0, ["http://a/1"]], [3, 17, ["http://a/2", "http://b/2"]], [0, 0, "raw://x"]]}`
)

// An entry is a file of a zip. A name that ends in / is a folder.
type entry struct {
	name, text string
	mode       fs.FileMode
}

func archive(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if e.mode != 0 {
			h.SetMode(e.mode)
		}
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = io.WriteString(w, e.text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func join(t testing.TB, version int, dict, envs string, home []byte) []byte {
	t.Helper()
	b, err := jobpack.Join(version, [4][]byte{[]byte(dict), []byte(envs), home, []byte("data")})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func read(b []byte) (*jobpack.Pack, error) { return jobpack.Read(bytes.NewReader(b), int64(len(b))) }

func TestPacksOfBothVersionsAreRead(t *testing.T) {
	b := join(t, 1, dict1, `{"A": "b"}`, archive(t, entry{name: "job", text: "#!"}))
	p, err := read(b)
	if err != nil {
		t.Fatal(err)
	}
	stages := []jobpack.Stage{{Name: "map", Grouping: "split"}, {Name: "map_shuffle", Grouping: "group_node"}, {Name: "reduce", Grouping: "group_all"}}
	inputs := []jobpack.Input{{URLs: []string{"http://a/1"}}, {URLs: []string{"http://a/2", "http://b/2"}}, {Label: jobpack.AllLabels, URLs: []string{"dir://n/disco/i"}}}
	if p.Version != 1 || p.Prefix != "gojob" || p.Worker != "job" || p.Envs["A"] != "b" || !reflect.DeepEqual(p.Stages, stages) || !reflect.DeepEqual(p.Inputs, inputs) {
		t.Errorf("version 1 is %+v", p)
	}
	if data, err := io.ReadAll(p.Data()); string(data) != "data" || err != nil {
		t.Errorf("its data is %q, %v", data, err)
	}
	p, err = read(join(t, 2, dict2, `{}`, archive(t, entry{name: "lib/worker.py"})))
	if err != nil {
		t.Fatal(err)
	}
	stages = []jobpack.Stage{{Name: "map", Grouping: "split"}, {Name: "shuffle", Grouping: "group_node", Concurrent: true}, {Name: "reduce", Grouping: "group_label"}}
	inputs = []jobpack.Input{{URLs: []string{"http://a/1"}}, {Label: 3, Size: 17, URLs: []string{"http://a/2", "http://b/2"}}, {URLs: []string{"raw://x"}}}
	if p.Version != 2 || p.MaxCores != 8 || p.Worker != "lib/worker.py" || !reflect.DeepEqual(p.Stages, stages) || !reflect.DeepEqual(p.Inputs, inputs) {
		t.Errorf("version 2 is %+v", p)
	}
}

func TestStagesOfVersion1(t *testing.T) {
	for said, want := range map[string]string{
		`"map?": true, "nr_reduces": 0`:                                               "map:split map_shuffle:group_node",
		`"reduce?": true, "nr_reduces": 1`:                                            "reduce:group_all",
		`"reduce?": true, "nr_reduces": 4`:                                            "reduce:group_label",
		`"reduce?": true, "nr_reduces": 4, "reduce_shuffle?": true`:                   "reduce:group_label reduce_shuffle:group_node",
		`"map?": true, "reduce?": true`:                                               "map:split map_shuffle:group_node reduce:group_all",
		`"map?": true, "reduce?": true, "nr_reduces": 2`:                              "map:split map_shuffle:group_node reduce:group_label",
		`"map?": true, "reduce?": true, "nr_reduces": 1, "reduce_shuffle?": true`:     "map:split map_shuffle:group_node reduce:group_all",
		`"map?": true, "reduce?": true, "nr_reduces": 2, "reduce_shuffle?": true`:     "map:split map_shuffle:group_node reduce:group_label reduce_shuffle:group_node",
		`"map?": true, "reduce?": false, "nr_reduces": null, "reduce_shuffle?": true`: "map:split map_shuffle:group_node",
	} {
		p, err := read(join(t, 1, `{"prefix": "x", "worker": "w", `+said+`}`, `{}`, archive(t, entry{name: "w"})))
		if err != nil {
			t.Errorf("%s: %v", said, err)
			continue
		}
		var got []string
		for _, s := range p.Stages {
			got = append(got, s.Name+":"+s.Grouping)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v", said, got)
		}
	}
}

func TestAPackIsReadAsItWasMade(t *testing.T) {
	for _, p := range []jobpack.Pack{
		{Version: 1, Prefix: "a", Owner: "me", Worker: "w", Envs: map[string]string{"A": "ü"}, Stages: []jobpack.Stage{{Name: "reduce", Grouping: "group_label"}},
			Inputs: []jobpack.Input{{URLs: []string{"raw://x"}}}, SaveResults: true},
		{Version: 2, Prefix: "a", Worker: "bin/w", Envs: map[string]string{}, Stages: []jobpack.Stage{{Name: "x", Grouping: "group_all", Concurrent: true}},
			Inputs: []jobpack.Input{{Label: 5, Size: 9, URLs: []string{"raw://x", "raw://y"}}}, MaxCores: 3},
	} {
		home := fstest.MapFS{p.Worker: {Data: []byte("#!/bin/sh\n"), Mode: 0o644}, "lib/a.py": {Data: []byte("pass"), Mode: 0o644}, "lib/run": {Mode: 0o755}}
		b, err := jobpack.Make(&p, home, []byte{1, 2, 3})
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(b)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := got.Unpack(dir); err != nil {
			t.Fatal(err)
		}
		for name, mode := range map[string]fs.FileMode{p.Worker: 0o700, "lib/a.py": 0o600, "lib/run": 0o700} {
			info, err := os.Stat(filepath.Join(dir, name))
			text, _ := os.ReadFile(filepath.Join(dir, name))
			if err != nil || info.Mode() != mode || !bytes.Equal(text, home[name].Data) {
				t.Errorf("%s is %v, %q, %v", name, info, text, err)
			}
		}
		if !sayTheSame(got, &p) {
			t.Errorf("made %+v, read %+v", p, got)
		}
	}
	old := jobpack.Pack{Version: 1, Prefix: "a", Worker: "w", Stages: []jobpack.Stage{{Name: "map", Grouping: "group_all"}}}
	if _, err := jobpack.Make(&old, fstest.MapFS{"w": {}}, nil); err == nil || err.Error() != "job pack: jobdict: pipeline: version 1 has no such stages; make a pack of version 2" {
		t.Errorf("made stages of version 1: %v", err)
	}
}

// sayTheSame compares what two packs say.
func sayTheSame(a, b *jobpack.Pack) bool {
	return a.Version == b.Version && a.Prefix == b.Prefix && a.Owner == b.Owner && a.Worker == b.Worker && a.MaxCores == b.MaxCores &&
		a.SaveResults == b.SaveResults && reflect.DeepEqual(a.Envs, b.Envs) && reflect.DeepEqual(a.Stages, b.Stages) && reflect.DeepEqual(a.Inputs, b.Inputs)
}

func TestTheJobOfAPackIsAPlan(t *testing.T) {
	p, err := read(join(t, 1, strings.Replace(dict1, `{}`, `{"max_cores": 2147483648}`, 1), `{"A": "a", "B": "b"}`, archive(t, entry{name: "job"})))
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Spec(map[string]string{"B": "c"})
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "gojob" || s.OnFailure != plan.Stop || len(s.Tasks) != 3 {
		t.Errorf("the plan is %+v", s)
	}
	var params struct{ Pack string }
	if err := json.Unmarshal(s.Tasks[0].Params.(json.RawMessage), &params); err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(p.Content())
	if sum, is := jobpack.Stored(params.Pack); !is || sum != fmt.Sprintf("%x", sha256.Sum256(content)) || err != nil {
		t.Errorf("the pack is %s, %v", params.Pack, err)
	}
	for i, want := range []struct{ name, foreach string }{
		{"map", `{"list":[{"label":0,"urls":["http://a/1"]},{"label":0,"urls":["http://a/2","http://b/2"]},{"label":"all","urls":["dir://n/disco/i"]}],"group":"split"}`},
		{"map_shuffle", `{"value":"needs.map","group":"group_node"}`},
		{"reduce", `{"value":"needs.map_shuffle","group":"group_all"}`},
	} {
		task := s.Tasks[i]
		if foreach, err := json.Marshal(task.Foreach); task.Name != want.name || string(foreach) != want.foreach || err != nil {
			t.Errorf("task %d is %s over %s, %v", i, task.Name, foreach, err)
		}
		if got := fmt.Sprintf("%s", task.Params); got != `{"env":{"A":"a","B":"c"},"pack":"`+params.Pack+`","worker":"job"}` {
			t.Errorf("its params are %s", got)
		}
	}
	if err := compiler.Validate(s); err != nil {
		t.Error(err)
	}
	if notes := p.Notes(); notes != nil || p.MaxTasks() != 0 {
		t.Errorf("notes %q, and a limit of %d", notes, p.MaxTasks())
	}
	p.SetInputs([]string{"dir://a/b", "tag://x"})
	if _, err := p.Spec(nil); err == nil || !strings.HasPrefix(err.Error(), `input 1: replica "tag://x"`) {
		t.Errorf("other inputs: %v", err)
	}
	p.Stages[0].Concurrent, p.MaxCores, p.SaveResults = true, 4, true
	if notes := p.Notes(); len(notes) != 2 || p.MaxTasks() != 4 {
		t.Errorf("notes %q", notes)
	}
}

// with returns a pack with a number of 32 bits of its header changed.
func with(b []byte, at int, n uint32) []byte {
	b = bytes.Clone(b)
	binary.BigEndian.PutUint32(b[at:], n)
	return b
}

func TestWhatIsNoPackIsRefused(t *testing.T) {
	home := archive(t, entry{name: "lib/worker.py", text: "x"})
	fine := join(t, 2, dict2, `{}`, home)
	edit := func(old, now string) []byte { return join(t, 2, strings.Replace(dict2, old, now, 1), `{}`, home) }
	entries := func(e ...entry) []byte {
		return join(t, 2, dict2, `{}`, archive(t, append(e, entry{name: "lib/worker.py"})...))
	}
	for _, test := range []struct {
		name string
		pack []byte
		want string
	}{
		{"nothing", nil, "header: the pack has 0 bytes, and its header alone has 128; send all of it"},
		{"a wrong magic number", with(fine, 0, 0x504b0304), "header: it begins with 0x504b, and a job pack with 0xd5c0; send"},
		{"another version", with(fine, 0, 0xd5c00003), "header: version 3 is not known; make a pack of version 1 or 2"},
		{"a jobdict elsewhere", with(fine, 4, 127), "header: jobdict begins at byte 127, and not behind the header"},
		{"falling offsets", with(fine, 12, 129), "header: jobhome begins at byte 129, before jobenvs at"},
		{"falling data", with(fine, 16, 200), "header: jobdata begins at byte 200, before jobhome at"},
		{"an offset beyond the end", with(fine, 16, 1<<31), "header: jobdata begins at byte 2147483648, and the pack has"},
		{"a cut pack", fine[:len(fine)-50], "the pack is cut: send all of it"},

		{"a jobdict that is no JSON", join(t, 2, `{`, `{}`, home), `jobdict: "{" is no JSON object`},
		{"no prefix", edit(`"count"`, `"a/b"`), `jobdict: prefix: "a/b" cannot begin the name of a job`},
		{"a worker that is no text", edit(`"lib/worker.py"`, `5`), "jobdict: worker: 5 is not a path"},
		{"no worker", edit(`"lib/worker.py"`, `""`), "jobdict: worker: there is none"},
		{"a worker elsewhere", edit(`"lib/worker.py"`, `"lib/../../bin/sh"`), `jobdict: worker: "lib/../../bin/sh" leads out of the job home; give a path in it`},
		{"an absolute worker", edit(`"lib/worker.py"`, `"/bin/sh"`), `jobdict: worker: "/bin/sh" leads out`},
		{"a limit below one", edit(`8`, `-1`), "jobdict: scheduler.max_cores: -1 is less than one task"},
		{"no stages", edit(`"pipeline"`, `"pipelines"`), "jobdict: pipeline: there are no stages"},
		{"a stage twice", edit(`["reduce"`, `["map"`), `jobdict: pipeline: stage "map" is there twice; names of stages are unique`},
		{"an unknown grouping", edit(`"group_node"`, `"group_host"`), `jobdict: pipeline: stage "shuffle": group is "group_host"; it is one of split`},
		{"a stage of one element", edit(`["map", "split", false]`, `["map"]`), `jobdict: pipeline: stage 0: ["map"] is none; write [name, grouping, concurrent]`},
		{"inputs of version 1", edit(`[0, 0, ["http://a/1"]]`, `"http://a/1"`), `jobdict: inputs: input 0: "http://a/1" is none; write [label, size, [URL, …]]`},
		{"a label below 0", edit(`[3, 17`, `[-3, 17`), "jobdict: inputs: input 1: label -3 is none"},
		{"nothing to do", join(t, 1, strings.NewReplacer("true", "false").Replace(dict1), `{}`, archive(t, entry{name: "job"})), "jobdict: map? and reduce? are both false"},

		{"variables that are no texts", join(t, 2, dict2, `{"A": 5}`, home), "jobenvs: A: 5 is not a text"},
		{"no name of a variable", join(t, 2, dict2, `{"A=": "b"}`, home), `jobenvs: "A=" cannot be a variable's name`},

		{"a cut zip", join(t, 2, dict2, `{}`, home[:len(home)-5]), "jobhome: the zip is cut or damaged"},
		{"no zip", join(t, 2, dict2, `{}`, nil), "jobhome: the zip is cut or damaged"},
		{"a worker that is not there", entriesWithout(t), `jobhome: the worker "lib/worker.py" is not in it; put the program there, or correct worker in jobdict`},
		{"a worker that is a folder", join(t, 2, dict2, `{}`, archive(t, entry{name: "lib/worker.py/"})), `the worker "lib/worker.py" is not in it`},
		{"a path that leads out", entries(entry{name: "a/../../x"}), `jobhome: "a/../../x" leads out of the job home`},
		{"an absolute path", entries(entry{name: "/etc/x"}), `"/etc/x" leads out`},
		{"a path of Windows", entries(entry{name: `..\x`}), "leads out of the job home"},
		{"a link", entries(entry{name: "x", text: "/etc", mode: fs.ModeSymlink | 0o777}), `"x" is a link, which may lead out of the job home; put the file itself there`},
		{"a pipe", entries(entry{name: "x", mode: fs.ModeNamedPipe | 0o600}), `"x" is neither a file nor a folder`},
		{"a file and a folder", entries(entry{name: "x"}, entry{name: "x/y"}), `"x" is a file and a folder; rename one of them`},
		{"a folder and a file", entries(entry{name: "x/y"}, entry{name: "x"}), `"x" is a file and a folder; rename one of them`},
		{"the host's own", entries(entry{name: "./jobfile"}), `"jobfile" is a name that the host of the worker keeps for itself`},
		{"a long path", entries(entry{name: strings.Repeat("x/", 600) + "x"}), "has more than 1024 bytes; shorten it"},
		{"too many folders", entries(folders()...), "it has more than 100000 files and folders"},
		{"a large zip", entriesOfSize(t, "lib/worker.py", 1<<30+1), "jobhome: its files have more than 1024 MiB in all"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := read(test.pack); err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "job pack: ") {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := jobpack.Read(bytes.NewReader(fine), 257<<20); !errors.Is(err, jobpack.ErrTooLarge) {
		t.Errorf("a pack of 257 MiB: %v", err)
	}
	if _, err := read(fine); err != nil {
		t.Error(err)
	}
}

func entriesWithout(t *testing.T) []byte {
	return join(t, 2, dict2, `{}`, archive(t, entry{name: "lib/other.py"}))
}

// folders are few entries that need more than 100,000 folders.
func folders() (all []entry) {
	for i := range 210 {
		all = append(all, entry{name: fmt.Sprintf("%d/%sx", i, strings.Repeat("y/", 480))})
	}
	return all
}

// raw returns an archive of one file whose header says that it has so many bytes.
func raw(t testing.TB, name, text string, size uint64) []byte {
	t.Helper()
	var b, packed bytes.Buffer
	z := zip.NewWriter(&packed) // to have the text as a zip has it
	w, err := z.Create(name)
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	if err != nil {
		t.Fatal(err)
	}
	in, err := r.File[0].OpenRaw()
	if err != nil {
		t.Fatal(err)
	}
	h := r.File[0].FileHeader
	h.UncompressedSize64, h.CRC32 = size, crc32.ChecksumIEEE([]byte(text))
	z = zip.NewWriter(&b)
	if w, err = z.CreateRaw(&h); err == nil {
		_, err = io.Copy(w, in)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func entriesOfSize(t testing.TB, name string, size uint64) []byte {
	return join(t, 2, dict2, `{}`, raw(t, name, "x", size))
}

// A zip says how large its files are. A file that has more is a bomb.
func TestABombIsNotUnpacked(t *testing.T) {
	for name, size := range map[string]uint64{"more than it says": 10, "less than it says": 1 << 21} {
		t.Run(name, func(t *testing.T) {
			p, err := read(join(t, 2, dict2, `{}`, raw(t, "lib/worker.py", strings.Repeat("x", 1<<20), size)))
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := p.Unpack(dir); err == nil || !strings.HasPrefix(err.Error(), `job pack: jobhome: "lib/worker.py": its content is cut or damaged`) {
				t.Errorf("got %v", err)
			}
			if info, err := os.Stat(filepath.Join(dir, "lib/worker.py")); err == nil && info.Size() > int64(size)+1<<16 {
				t.Errorf("%d bytes were written", info.Size())
			}
		})
	}
}

// Python's zipfile keeps each file that was written, also of one name. The last one counts.
func TestAFileThatIsThereTwiceIsTheLast(t *testing.T) {
	p, err := read(join(t, 2, dict2, `{}`, archive(t, entry{name: "lib/worker.py", text: "old"}, entry{name: "lib/", mode: fs.ModeDir | 0o500}, entry{name: "lib/worker.py", text: "new"})))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := p.Unpack(dir); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "lib/worker.py")); string(text) != "new" || err != nil {
		t.Errorf("it is %q, %v", text, err)
	}
}

func TestTheDirectoryOfAZipIsBounded(t *testing.T) {
	var many []entry
	for i := range 17_000 {
		many = append(many, entry{name: fmt.Sprintf("%s%d", strings.Repeat("x", 1000), i)})
	}
	b := join(t, 2, dict2, `{}`, archive(t, many...))
	if _, err := read(b); err == nil || err.Error() != "job pack: jobhome: its directory has more than 16 MiB; put fewer files into it, in an archive" {
		t.Errorf("got %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(uint16(1), dict1, `{"A": "b"}`, archive(f, entry{name: "job", text: "#!"}), 20, uint32(0))
	f.Add(uint16(2), dict2, `{}`, archive(f, entry{name: "lib/worker.py", text: strings.Repeat("x", 100)}, entry{name: "a/"}), 16, uint32(1))
	f.Add(uint16(2), dict2, `{}`, archive(f, entry{name: "../x"}, entry{name: "lib/worker.py"}), 0, uint32(0))
	f.Add(uint16(2), dict2, `{}`, archive(f, entry{name: "lib/worker.py"}, entry{name: "l", text: "/", mode: fs.ModeSymlink | 0o777}), 0, uint32(0))
	f.Add(uint16(2), dict2, `{}`, raw(f, "lib/worker.py", "x", 3), 0, uint32(0))
	f.Fuzz(func(t *testing.T, version uint16, dict, envs string, home []byte, at int, moved uint32) {
		b := join(t, int(version), dict, envs, home)
		if at >= 0 && at < 124 { // a number of the header is another one
			b = with(b, at, binary.BigEndian.Uint32(b[at:])+moved)
		}
		p, err := read(b)
		if err != nil {
			return
		}
		outside := t.TempDir()
		dir := filepath.Join(outside, "home")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if size := int64(len(b)) * 2000; size < 1<<24 { // flate packs no better than that
			if p.Unpack(dir) == nil {
				if info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(p.Worker))); err != nil || !info.Mode().IsRegular() {
					t.Errorf("the worker is %v, %v", info, err)
				}
			}
		}
		if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
			t.Errorf("beside the job home are %v, %v", left, err)
		}
		data, err := io.ReadAll(p.Data())
		if err != nil {
			t.Fatal(err)
		}
		again, err := jobpack.Make(p, fstest.MapFS{p.Worker: {}}, data)
		if err != nil {
			t.Skip(err) // as a worker whose path no file system has
		}
		if q, err := read(again); err != nil || !sayTheSame(p, q) {
			t.Errorf("%+v became %+v, %v", p, q, err)
		}
	})
}
