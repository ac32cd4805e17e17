package sqlite

import "context"

// Wakes implements store.Node. It watches the file in which others count their notices. For a private
// database the notices are those of the handle itself.
func (s *Store) Wakes(ctx context.Context) <-chan struct{} {
	if s.turn.private() {
		return s.turn.wakes(ctx)
	}
	changed := watch(ctx, s.turn.turn.Name())
	if changed == nil {
		return nil
	}
	wakes := make(chan struct{}, 1)
	seen := s.turn.notices()
	go func() {
		defer close(wakes)
		for range changed {
			n := s.turn.notices()
			if n == seen {
				continue // a notice of our own
			}
			seen = n
			select {
			case wakes <- struct{}{}:
			default: // the last one was not taken yet
			}
		}
	}()
	return wakes
}

// wakes returns the channel of Wakes for a private database.
func (t *turnstile) wakes(ctx context.Context) <-chan struct{} {
	w := make(chan struct{}, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wakers[w] = true
	context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.wakers, w)
		close(w)
	})
	return w
}
