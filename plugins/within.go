package plugins

import (
	"context"
	"time"
)

// hung is how long after the end of its context what still does not answer is taken to hang.
const hung = 500 * time.Millisecond

// Within calls do, which may hang without a way to cancel it, such as a read of a file whose server
// is gone. It returns do's result. If ctx ends and do has not returned half a second later, Within
// returns ctx's cause. It then leaves do's goroutine behind, which ends when the call ends. Late
// effects of do must not matter. Any number of goroutines may call Within at once.
func Within[T any](ctx context.Context, do func() (T, error)) (value T, err error) {
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		value, err := do()
		done <- answer{value, err}
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-done: // it did not hang
		return a.value, a.err
	case <-time.After(hung):
		return value, context.Cause(ctx)
	}
}
