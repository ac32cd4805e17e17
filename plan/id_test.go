package plan_test

import (
	"bytes"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

func TestIDsOfOneProcessAscendAndDiffer(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	last := plan.NewID(at)
	run := plan.NewIDs(at, 1000)
	other := plan.NewID(at)
	for range 1000 {
		id := run.Next()
		if bytes.Compare(id[:], last[:]) <= 0 {
			t.Fatalf("%s does not come after %s", id, last)
		}
		last = id
	}
	if bytes.Compare(other[:], last[:]) <= 0 {
		t.Errorf("%s was minted after a run was reserved, and is not behind it: %s", other, last)
	}
	next := plan.NewID(at.Add(time.Second))
	if bytes.Compare(next[:], other[:]) <= 0 || !next.Time().Equal(at.Add(time.Second)) {
		t.Errorf("%s of %v does not come after %s", next, next.Time(), other)
	}
}

func TestARunOfIDsIsKnownByItsFirst(t *testing.T) {
	for _, first := range []plan.ID{
		plan.NewID(time.Now()),
		{0x65, 1, 2, 3, 4, 5, 6, 7, 8, 0xff, 0xff, 0xfe}, // the counter goes over into the seconds
		{0x65, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0},
	} {
		same := plan.SameIDs(first)
		if got := same.Next(); got != first {
			t.Errorf("the first is %s, want %s", got, first)
		}
		last := first
		for range 5 {
			id := same.Next()
			if again := plan.SameIDs(last); again.Next() != last || again.Next() != id || bytes.Compare(id[:], last[:]) <= 0 {
				t.Errorf("%s is followed by %s here, and by another one elsewhere", last, id)
			}
			last = id
		}
	}
	run := plan.NewIDs(time.Now(), 3)
	first := run.Next()
	if same := plan.SameIDs(first); same.Next() != first || same.Next() != run.Next() || same.Next() != run.Next() {
		t.Errorf("the run that begins with %s is another one", first)
	}
}

func TestIDsThatManyMintAtOnceDiffer(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	var mu sync.Mutex
	seen := map[plan.ID]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				run := plan.NewIDs(at, 10)
				mu.Lock()
				for range 10 {
					seen[run.Next()] = true
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != 8000 {
		t.Errorf("%d ids, want 8000", len(seen))
	}
}

func TestAnIDIsReadAsItIsWritten(t *testing.T) {
	id := plan.NewID(time.Now())
	if got, err := plan.ParseID(id.String()); err != nil || got != id || len(id.String()) != 24 {
		t.Errorf("%q is read as %s, %v", id.String(), got, err)
	}
	for _, wrong := range []string{"x", "0123456789abcdef0123456", "0123456789abcdef0123456789", "0123456789abcdef0123456g"} {
		if _, err := plan.ParseID(wrong); err == nil {
			t.Errorf("%q is read as an id", wrong)
		}
	}
	type record struct {
		ID   plan.TaskID `json:"id"`
		None plan.TaskID `json:"none"`
		Of   plan.TaskID `json:"of,omitzero"`
	}
	text, err := json.Marshal(record{ID: plan.TaskID{ID: id}})
	if want := `{"id":"` + id.String() + `","none":""}`; err != nil || string(text) != want {
		t.Errorf("as JSON it is %s, %v; want %s", text, err, want)
	}
	var back record
	if err := json.Unmarshal(text, &back); err != nil || back.ID.ID != id || !back.None.IsZero() {
		t.Errorf("%s is read as %v, %v", text, back, err)
	}
}
