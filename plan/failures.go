package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// CheckMaxFailures returns why a text is no MaxFailures: it is a number from 0 on, or a share from 0% to
// 100%.
func CheckMaxFailures(text string) error {
	digits, share := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(digits)
	switch {
	case err != nil || n < 0 || strings.HasPrefix(digits, "+"):
		return fmt.Errorf("max_failures is %q; it is a number of items, as 3, or a share of them, as 1%%", text)
	case share && n > 100:
		return fmt.Errorf("max_failures is %s; a share of the items is at most 100%%", text)
	}
	return nil
}

// AllowedFailures returns how many of so many items may fail by a MaxFailures. A share is rounded down. An
// empty or malformed text allows none.
func AllowedFailures(text string, items int) int {
	digits, share := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(digits)
	switch {
	case err != nil || n < 0:
		return 0
	case share:
		return items * min(n, 100) / 100
	}
	return n
}
