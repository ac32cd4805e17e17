package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"zombiezen.com/go/sqlite"
)

// printMachine says what is measured on: without it no figure means anything. The lines have the
// form of Go's benchmark data.
func printMachine(b *testing.B) {
	ninja, err := exec.Command("ninja", "--version").Output()
	if err != nil {
		ninja = []byte("not installed (Debian: apt-get install ninja-build)")
	}
	for _, fact := range []string{
		fmt.Sprintf("time: %s", time.Now().UTC().Format(time.RFC3339)),
		fmt.Sprintf("machine: %d processors, %s of memory, kernel %s", runtime.NumCPU(), after("/proc/meminfo", "MemTotal"), strings.TrimSpace(content("/proc/sys/kernel/osrelease"))),
		fmt.Sprintf("scratch: %s, %s", os.TempDir(), condition(b.TempDir())),
		fmt.Sprintf("software: %s; SQLite %s, WAL, flushed before each answer; MongoDB %s", runtime.Version(), sqlite.Version, mongoVersion(b.Context())),
		fmt.Sprintf("ninja: %s", strings.TrimSpace(string(ninja))),
	} {
		fmt.Println(fact)
	}
}

// condition says what else the machine does, and the cost of a small safe write there. That is the
// least cost of a durable turn.
func condition(dir string) string {
	load, _, _ := strings.Cut(content("/proc/loadavg"), " ")
	took, err := flushes(dir, 20)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("load %s; write of 8 KiB and fsync: median %.2f ms, longest %.2f ms", cmp.Or(load, "unknown"), milliseconds(median(took)), milliseconds(slices.Max(took)))
}

// flushes writes 8 KiB to a file of its own and flushes it, n times. It returns how long each took.
func flushes(dir string, n int) (took []time.Duration, err error) {
	file, err := os.CreateTemp(dir, "sync")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	block := make([]byte, 8192)
	for range n {
		start := time.Now()
		if _, err := file.WriteAt(block, 0); err != nil {
			return nil, err
		}
		if err := file.Sync(); err != nil {
			return nil, err
		}
		took = append(took, time.Since(start))
	}
	return took, nil
}

// content returns the text of a file, nothing where there is no such file.
func content(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// after returns the value of the first "key : value" line of a file; "unknown" where there is no such file.
func after(path, key string) string {
	for line := range strings.Lines(content(path)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func mongoVersion(ctx context.Context) string {
	if mongoServer() == "" {
		return "takes no part"
	}
	var info bson.M
	client, db := rawMongoDB(newMongoDB(), nil)
	err := db.RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Decode(&info)
	if err = errors.Join(err, client.Disconnect(ctx)); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%v (FerretDB %v), w:majority, j:true", info["version"], info["ferretdb"])
}

// median returns the middle of the values, of an even number the lower one of the two.
func median[T cmp.Ordered](values []T) T { return quantile(values, 0.5) }

// quantile returns the smallest value that at least the share q of the values does not exceed (the
// "nearest rank"), the zero value if there are none.
func quantile[T cmp.Ordered](values []T, q float64) T {
	if len(values) == 0 {
		var zero T
		return zero
	}
	sorted := slices.Sorted(slices.Values(values))
	i := int(q * float64(len(sorted)))
	if float64(i) == q*float64(len(sorted)) {
		i--
	}
	return sorted[min(max(i, 0), len(sorted)-1)]
}

func TestQuantileIsTheNearestRank(t *testing.T) {
	ten := []int{9, 1, 8, 2, 7, 3, 6, 4, 5, 10}
	for _, c := range []struct {
		q    float64
		want int
	}{{0, 1}, {0.1, 1}, {0.5, 5}, {0.51, 6}, {0.99, 10}, {1, 10}} {
		if got := quantile(ten, c.q); got != c.want {
			t.Errorf("quantile %v of 1…10 is %d, want %d", c.q, got, c.want)
		}
	}
}
