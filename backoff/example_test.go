package backoff_test

import (
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/backoff"
)

// An idle worker waits longer each time that it finds nothing.
func ExamplePoll() {
	var p backoff.Poll
	fmt.Println(p.Next(), p.Next(), p.Next())
	p.Reset() // work was found
	fmt.Println(p.Next())
	// Output:
	// 100ms 150ms 225ms
	// 100ms
}

// A task that failed waits longer before each further attempt.
func ExampleRetry_Delay() {
	r := backoff.Retry{Initial: time.Second, Max: 5 * time.Second, Jitter: -1} // exact
	for attempt := 1; attempt <= 4; attempt++ {
		fmt.Println(r.Delay(attempt, nil))
	}
	// Output:
	// 1s
	// 2s
	// 4s
	// 5s
}
