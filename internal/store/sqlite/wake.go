package sqlite

import "context"

// Wakes implements store.Node. It watches the file in which others count their notices.
func (s *Store) Wakes(ctx context.Context) <-chan struct{} {
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
