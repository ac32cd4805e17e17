package plugins

import (
	"context"
	"time"
)

// hung is how long after the end of its context what still does not answer is taken to hang.
const hung = 500 * time.Millisecond

// Within does what may hang and cannot be called off, as a read of a file whose server is gone, and returns what it came to. When ctx has
// ended and half a second later there is no answer, it returns ctx's cause: the goroutine that do is in is left behind then, and ends when
// the call does. What do changes must not matter to anybody by then. Any number of goroutines may call it at once.
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
