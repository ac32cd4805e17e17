package mongodb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/mongotest"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/internal/store/storetest"
	"github.com/seed-1177d267/sluice/plan"
)

func TestResults(t *testing.T) {
	beds := map[store.Store]bed{}
	open := func(t testing.TB, b bed, o storetest.Options) store.Store {
		s, err := Open(t.Context(), b.uri, Options{Hook: o.Hook})
		if err != nil {
			t.Fatal(err)
		}
		beds[s] = b
		return s
	}
	driver := storetest.ResultsDriver{
		Driver: storetest.Driver{
			Open: func(t testing.TB, o storetest.Options) store.Store {
				uri, db := database(t)
				return open(t, bed{uri, db}, o)
			},
			Reopen: func(t testing.TB, s store.Store, o storetest.Options) store.Store { return open(t, beds[s], o) },
			Pass:   func(t testing.TB, s store.Store, d time.Duration) { mongotest.Pass(t, beds[s].db, d) },
		},
		Place: func(t testing.TB, s store.Store, id plan.TaskID, stream plan.Stream) string {
			return map[bson.Type]string{bson.TypeString: "document", bson.TypeObjectID: "file", bson.TypeNull: "null"}[streamOf(t, beds[s].db, id, stream).Type]
		},
		Forgets: true,
		Rows: func(t testing.TB, s store.Store) (rows int) {
			for _, c := range []string{"tasks.files", "tasks.chunks"} {
				n, err := beds[s].db.Collection(c).CountDocuments(t.Context(), bson.D{})
				if err != nil {
					t.Fatal(err)
				}
				rows += int(n)
			}
			return rows
		},
	}
	storetest.Results(t, driver)
	storetest.Packs(t, driver)
}

// streamOf returns what a task's document says of one of its streams.
func streamOf(t testing.TB, db *mongo.Database, id plan.TaskID, stream plan.Stream) bson.RawValue {
	t.Helper()
	name := map[plan.Stream]string{plan.Stdout: "stdout", plan.Stderr: "stderr"}[stream]
	raw, err := db.Collection("tasks").FindOne(t.Context(), d("_id", oid(id.ID)), options.FindOne().SetProjection(d(name, 1))).Raw()
	if err != nil {
		t.Fatal(err)
	}
	return raw.Lookup(name)
}

// claimOne adds a task of no plan with those params, and claims it.
func claimOne(t *testing.T, s *Store, params string) protocol.ClaimedTask {
	t.Helper()
	no := noError(t)
	q, err := s.EnsureQueue(t.Context(), plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}, Name: "q", Plugin: "demo", Unlimited: true})
	no(err)
	no(s.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "a", Queue: q.ID, Params: json.RawMessage(params)}}))
	i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n"}
	no(s.Register(t.Context(), i))
	did, err := s.Turn(t.Context(), protocol.Turn{Instance: i.ID, Slots: 1, Plugins: []string{"demo"}, Start: true})
	no(err)
	if len(did.Claimed) != 1 {
		t.Fatalf("claimed %d tasks", len(did.Claimed))
	}
	return did.Claimed[0]
}

func section(text string) *io.SectionReader {
	return io.NewSectionReader(strings.NewReader(text), 0, int64(len(text)))
}

func read(ctx context.Context, s *Store, id plan.TaskID, stream plan.Stream) (string, int64, error) {
	r, size, err := s.OpenResult(ctx, id, stream)
	if err != nil {
		return "", size, err
	}
	text, err := io.ReadAll(r)
	return string(text), size, errors.Join(err, r.Close())
}

// TestAFileIsWrittenAsDisbatchDoes reads the collections as another program does.
func TestAFileIsWrittenAsDisbatchDoes(t *testing.T) {
	s, db, no := openTest(t)
	c := claimOne(t, s, `{}`)
	text := "x" + strings.Repeat("€", 200<<10) + "\n"
	no(s.PutResults(t.Context(), c.Claim, section(text), section("err\n"), protocol.GFSAlways))
	file := streamOf(t, db, c.Task, plan.Stdout).ObjectID()
	raw, err := db.Collection("tasks.files").FindOne(t.Context(), d("_id", file)).Raw()
	no(err)
	uploaded := raw.Lookup("uploadDate")
	if uploaded.Type != bson.TypeDateTime || time.Since(uploaded.Time()).Abs() > time.Hour {
		t.Errorf("uploadDate is %v", uploaded)
	}
	want := bson.M{
		"_id": file, "length": int64(len(text)), "chunkSize": int32(255 << 10), "uploadDate": bson.DateTime(uploaded.Time().UnixMilli()),
		"filename": "stdout", "metadata": bson.D{{Key: "task_id", Value: oid(c.Task.ID)}},
	}
	var got bson.M
	no(bson.Unmarshal(raw, &got))
	if g, w := asJSON(t, got), asJSON(t, want); g != w {
		t.Errorf("the file is\n%s, want\n%s", g, w)
	}
	cursor, err := db.Collection("tasks.chunks").Find(t.Context(), d("files_id", file), options.Find().SetSort(d("n", 1)))
	no(err)
	var all strings.Builder
	n := 0
	for ; cursor.Next(t.Context()); n++ {
		data := cursor.Current.Lookup("data")
		piece, ok := data.StringValueOK()
		if !ok || !utf8.ValidString(piece) || len(piece) > 255<<10 || cursor.Current.Lookup("n").AsInt64() != int64(n) {
			t.Fatalf("chunk %d is number %v, of type %v, with %d bytes", n, cursor.Current.Lookup("n"), data.Type, len(piece))
		}
		all.WriteString(piece)
	}
	if all.String() != text || n != 3 {
		t.Errorf("%d chunks have %d bytes together, want 3 with the %d bytes of the text", n, all.Len(), len(text))
	}
	// The driver's own GridFS finds the file. It cannot read it: the specification has binary data alone, and of strings the driver panics.
	r, err := db.GridFSBucket(options.GridFSBucket().SetName("tasks")).OpenDownloadStream(t.Context(), file)
	no(err)
	if f := r.GetFile(); f.Length != int64(len(text)) || f.ChunkSize != 255<<10 || f.Name != "stdout" {
		t.Errorf("the driver finds %+v", f)
	}
	no(r.Close())
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestResultsOfOtherPrograms are read whatever wrote them.
func TestResultsOfOtherPrograms(t *testing.T) {
	s, db, no := openTest(t)
	c := claimOne(t, s, `{}`)
	set := func(stdout any) {
		_, err := db.Collection("tasks").UpdateByID(t.Context(), oid(c.Task.ID), d("$set", d("stdout", stdout)))
		no(err)
	}
	want := func(what, text string, size int64) {
		t.Helper()
		if got, n, err := read(t.Context(), s, c.Task, plan.Stdout); err != nil || got != text || n != size {
			t.Errorf("%s: %d bytes, said to be %d, %v; want %d, said to be %d", what, len(got), n, err, len(text), size)
		}
	}
	text := strings.Repeat("line é\n", 100_000)
	bucket := db.GridFSBucket(options.GridFSBucket().SetName("tasks"))
	file, err := bucket.UploadFromStream(t.Context(), "stdout", strings.NewReader(text), options.GridFSUpload().SetMetadata(d("task_id", oid(c.Task.ID))))
	no(err)
	set(file)
	want("the driver's own file, with binary data", text, int64(len(text)))
	perl := bson.NewObjectID() // which counts characters
	_, err = db.Collection("tasks.files").InsertOne(t.Context(), d("_id", perl, "length", 3.0, "filename", "stdout", "metadata", d("task_id", oid(c.Task.ID))))
	no(err)
	for n, data := range []string{"é", "ü\n"} {
		_, err = db.Collection("tasks.chunks").InsertOne(t.Context(), d("files_id", perl, "n", n, "data", data))
		no(err)
	}
	set(perl)
	want("a file of strings", "éü\n", 3)
	set("text")
	want("a string", "text", 4)
	set(bson.Binary{Data: []byte("\xff")})
	want("bytes", "\xff", 1)
	set(7)
	want("a number", "", -1)
	set(nil)
	want("null", "", -1)
	set(file)
	for _, n := range []int{len(text) / (255 << 10), 0} { // the last one, and the first
		_, err = db.Collection("tasks.chunks").DeleteOne(t.Context(), d("files_id", file, "n", n))
		no(err)
		if got, _, err := read(t.Context(), s, c.Task, plan.Stdout); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("of a file without its chunk %d %d bytes are read, %v; want ErrUnexpectedEOF", n, len(got), err)
		}
	}
	set(bson.NewObjectID())
	if _, _, err := read(t.Context(), s, c.Task, plan.Stdout); err == nil || !strings.Contains(err.Error(), "is not in tasks.files") {
		t.Errorf("a file that is not there: %v", err)
	}
	no(s.PutResults(t.Context(), c.Claim, section("mine"), nil, protocol.GFSAuto))
	want("what replaces it", "mine", 4)
	if n, err := db.Collection("tasks.files").CountDocuments(t.Context(), bson.D{}); err != nil || n != 0 {
		t.Errorf("%d files of others are left (%v)", n, err)
	}
}

// TestWhatDoesNotFitIntoTheDocument: its params may be large as well.
func TestWhatDoesNotFitIntoTheDocument(t *testing.T) {
	s, db, no := openTest(t)
	params, err := json.Marshal(map[string]string{"large": strings.Repeat("x", 8<<20)})
	no(err)
	c := claimOne(t, s, string(params))
	large := strings.Repeat("0123456789abcde\n", 10<<16) // 10 MiB
	no(s.PutResults(t.Context(), c.Claim, section(large), section("err"), protocol.GFSAuto))
	for _, stream := range []plan.Stream{plan.Stdout, plan.Stderr} {
		if v := streamOf(t, db, c.Task, stream); v.Type != bson.TypeObjectID {
			t.Errorf("stream %d is of type %v beside large params, want a file", stream, v.Type)
		}
	}
	if got, _, err := read(t.Context(), s, c.Task, plan.Stdout); err != nil || got != large {
		t.Errorf("%d bytes are read (%v), want %d", len(got), err, len(large))
	}
	for _, x := range []struct{ stdout, stderr, out, err string }{
		{large, "err", "refusal", "err"},
		{large + large, "err", "refusal", "err"},
		{"out", large, "refusal", ""},
	} {
		no(s.PutResults(t.Context(), c.Claim, section(x.stdout), section(x.stderr), protocol.GFSNever))
		out, _, err := read(t.Context(), s, c.Task, plan.Stdout)
		no(err)
		stderr, _, err := read(t.Context(), s, c.Task, plan.Stderr)
		no(err)
		if !strings.Contains(strings.ToLower(out), "larg") && !strings.Contains(out, "at most") || len(out) > 1000 || stderr != x.err {
			t.Errorf("stdout is %.200q, stderr %.20q; want a refusal and %q", out, stderr, x.err)
		}
		t.Logf("refusal: %s", out)
	}
	if n, err := db.Collection("tasks.files").CountDocuments(t.Context(), bson.D{}); err != nil || n != 0 {
		t.Errorf("%d files are left (%v)", n, err)
	}
}

// TestAClaimThatIsLostWhileFilesGoIn leaves none of them.
func TestAClaimThatIsLostWhileFilesGoIn(t *testing.T) {
	uri, db := database(t)
	s, no := openAt(t, uri), noError(t)
	c := claimOne(t, s, `{}`)
	no(s.PutResults(t.Context(), c.Claim, section("out"), nil, protocol.GFSAlways))
	lost := false
	other, err := Open(t.Context(), uri, Options{Hook: func(written bool) error {
		if !written || lost {
			return nil
		}
		lost = true
		_, err := db.Collection("tasks").UpdateByID(t.Context(), oid(c.Task.ID), d("$set", d("token", bson.NewObjectID())))
		return err
	}})
	no(err)
	t.Cleanup(func() { no(other.Close()) })
	if err := other.PutResults(t.Context(), c.Claim, section(strings.Repeat("x", 2*chunkBytes)), section("err"), protocol.GFSAlways); !errors.Is(err, plan.ErrClaimLost) || !lost {
		t.Errorf("lost %v: %v, want ErrClaimLost", lost, err)
	}
	for name, want := range map[string]int64{"tasks.files": 2, "tasks.chunks": 1} { // that of null has no chunk
		if n, err := db.Collection(name).CountDocuments(t.Context(), bson.D{}); err != nil || n != want {
			t.Errorf("%d documents are in %s (%v), want the %d from before", n, name, err, want)
		}
	}
	if got, _, err := read(t.Context(), s, c.Task, plan.Stdout); err != nil || got != "out" {
		t.Errorf("stdout is %q, %v", got, err)
	}
}

func TestNoChunkCutsACharacter(t *testing.T) {
	for _, size := range []int{0, 1, chunkBytes - 1, chunkBytes, chunkBytes + 1, 3 * chunkBytes} {
		for shift := range 4 {
			text := strings.Repeat("x", shift) + strings.Repeat("𝄞€é", size/9) + "\xe2\x82"
			c := newCutter(section(text))
			var all bytes.Buffer
			for {
				piece, err := c.next()
				if err != nil {
					t.Fatal(err)
				}
				if len(piece) == 0 {
					break
				}
				if !utf8.Valid(piece) || len(piece) > chunkBytes || len(piece) < chunkBytes-3 && c.at < int64(len(text)) {
					t.Fatalf("size %d, shift %d: a chunk of %d bytes, valid %v", size, shift, len(piece), utf8.Valid(piece))
				}
				all.Write(piece)
			}
			if want := strings.ToValidUTF8(text, "\ufffd"); all.String() != want {
				t.Errorf("size %d, shift %d: %d bytes, want %d", size, shift, all.Len(), len(want))
			}
		}
	}
}

// TestWhatComesWithAnEndingGoesIntoFilesWhereTheDocumentHasNoRoom fills a document as another program might.
func TestWhatComesWithAnEndingGoesIntoFilesWhereTheDocumentHasNoRoom(t *testing.T) {
	s, db, no := openTest(t)
	c := claimOne(t, s, `{}`)
	const most = 16 << 20
	_, err := db.Collection("tasks").UpdateOne(t.Context(), d("_id", oid(c.Task.ID)), d("$set", d("theirs", strings.Repeat("x", most-10<<10))))
	no(err)
	end := protocol.Ending{Claim: c.Claim, Status: plan.Succeeded, Printed: &protocol.Printed{Stdout: []byte(strings.Repeat("y", 15<<10))}}
	task, err := wire.FindOne[taskDoc](t.Context(), s.tasks, d("_id", oid(c.Task.ID)), wire.Query{Fields: d("instance", 1)})
	no(err)
	did, err := s.Turn(t.Context(), protocol.Turn{Instance: plan.InstanceID{ID: plan.ID(task.Instance)}, Ended: []protocol.Ending{end}})
	no(err)
	got, err := s.Task(t.Context(), c.Task)
	no(err)
	if got.Status != plan.Succeeded || len(did.Lost) > 0 {
		t.Errorf("it is %v (%s)", got.Status, got.Detail)
	}
	if out, _, err := read(t.Context(), s, c.Task, plan.Stdout); err != nil || out != string(end.Printed.Stdout) {
		t.Errorf("its standard output has %d bytes, %v", len(out), err)
	}
	if in := streamOf(t, db, c.Task, plan.Stdout).Type; in != bson.TypeObjectID {
		t.Errorf("its standard output is a %v of the document", in)
	}
}
