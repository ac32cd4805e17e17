package storetest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// firstSeed is the first seed of each random test. The same tree therefore gives the same answer.
// make search draws other seeds.
const firstSeed = 1

// A trial is a random test of one seed. It returns what is wrong, and the steps that show it.
type trial struct {
	kind string // what make search counts
	at   string // where below the driver's test a single seed is repeated; "": in that test itself
	try  func(t *testing.T, d *Driver, seed uint64) (wrong, did []string)
}

// trials are the random tests that every driver takes. Damage is for drivers that have it.
var trials = []trial{
	{"walks", "walks", func(t *testing.T, d *Driver, seed uint64) (wrong, did []string) {
		return shortestWalk(t, d, seed, false)
	}},
	{"late writes", "late", tryLateWrite},
	{"deaths", "crash", tryDeath},
	{"damaged walks", "damage", func(t *testing.T, d *Driver, seed uint64) (wrong, did []string) {
		return shortestWalk(t, d, seed, true)
	}},
}

// repeatedSeed is the seed of SLUICE_TEST_SEED, which repeats one trial.
func repeatedSeed(t testing.TB) (seed uint64, is bool) {
	t.Helper()
	text := os.Getenv("SLUICE_TEST_SEED")
	if text == "" {
		return 0, false
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("SLUICE_TEST_SEED: %v", err)
	}
	return seed, true
}

// seeds are the seeds of a test that tries so many: those from the first one on, or the repeated one alone.
func seeds(t testing.TB, count int) (all []uint64) {
	t.Helper()
	if seed, is := repeatedSeed(t); is {
		return []uint64{seed}
	}
	for k := range count {
		all = append(all, firstSeed+uint64(k))
	}
	return all
}

// takes tries the trial of that place with each of its seeds.
func takes(at string, count func(d *Driver) int) func(w *world) {
	k := slices.IndexFunc(trials, func(x trial) bool { return x.at == at })
	return func(w *world) {
		for _, seed := range seeds(w, count(w.d)) {
			w.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
				if w.d.AtOnce {
					t.Parallel()
				}
				if wrong, did := trials[k].try(t, w.d, seed); len(wrong) > 0 {
					t.Errorf("SLUICE_TEST_SEED=%d repeats this:\n  %s\nwhich shows:\n  %s", seed, strings.Join(did, "\n  "), strings.Join(wrong, "\n  "))
				}
			})
		}
	}
}

// searchTime is how long make search tries new seeds; 0: the test is none of its.
func searchTime(t testing.TB) time.Duration {
	t.Helper()
	text := os.Getenv("SLUICE_TEST_SEARCH")
	if text == "" {
		return 0
	}
	length, err := time.ParseDuration(text)
	if err != nil || length <= 0 {
		t.Fatalf("SLUICE_TEST_SEARCH=%s: give a length, as in 10m", text)
	}
	return length
}

// search tries new seeds of the trials, in turns, and goes on after a failure. It prints a line
// that repeats each failure, and how many seeds of each kind it tried.
func search(t *testing.T, d *Driver, length time.Duration, all []trial) {
	end, at := time.Now().Add(length), 1
	if d.AtOnce {
		at = 4
	}
	var mu sync.Mutex
	next, tried, failed := uint64(time.Now().UnixNano())%1e9, map[string]int{}, map[string]int{}
	var wg sync.WaitGroup
	for range at {
		wg.Go(func() {
			for time.Now().Before(end) {
				mu.Lock()
				seed, x := next, all[next%uint64(len(all))]
				next++
				tried[x.kind]++
				mu.Unlock()
				t.Run(fmt.Sprint(x.kind, " seed ", seed), func(t *testing.T) {
					wrong, did := x.try(t, d, seed)
					if len(wrong) == 0 {
						return
					}
					mu.Lock()
					failed[x.kind]++
					mu.Unlock()
					fmt.Printf("%s\n  %s\nwhich shows:\n  %s\n", repeating(t, x, seed), strings.Join(did, "\n  "), strings.Join(wrong, "\n  "))
					t.Fail()
				})
			}
		})
	}
	wg.Wait()
	for _, kind := range slices.Sorted(maps.Keys(tried)) {
		fmt.Printf("%s %s: %d %s tried, %d failed\n", folder(t), t.Name(), tried[kind], kind, failed[kind])
	}
}

// repeating is the command that repeats one seed of a trial.
func repeating(t *testing.T, x trial, seed uint64) string {
	test, _, _ := strings.Cut(t.Name(), "/"+strings.ReplaceAll(x.kind, " ", "_"))
	if x.at != "" {
		test += "/" + x.at
	}
	return fmt.Sprintf("SLUICE_TEST_SEED=%d go test -count=1 -run '^%s$' %s", seed, strings.ReplaceAll(test, "/", "$/^"), folder(t))
}

// folder is the folder of the package that is tested, as the go command takes it in the module's root.
func folder(t *testing.T) string {
	t.Helper()
	at, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for root := at; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return "." + strings.TrimPrefix(at, root)
		}
		if root == filepath.Dir(root) {
			t.Fatalf("%s is in no module", at)
		}
	}
}
