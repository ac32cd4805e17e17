package disco

import "errors"

const (
	shared = iota
	exclusive
	try
)

// lock is never called: the plugin is refused on Windows.
func lock(string, int) (unlock func(), err error) { return nil, errors.ErrUnsupported }
