package plan

import (
	"fmt"
	"math"
	"strings"
)

// Progress is how far a running attempt says it is.
type Progress struct {
	Fraction float64 `json:"fraction"`       // from 0 to 1
	Text     string  `json:"text,omitempty"` // one line for people, of at most MaxProgressText bytes
}

// String is for people, as in "40% copied 400 of 1000". Only what is done has 100%.
func (p Progress) String() string {
	const exact = 1e-9 // 0.29 is 29%, though 0.29*100 is less than 29
	return strings.TrimSpace(fmt.Sprintf("%d%% %s", int(math.Floor(p.Fraction*100+exact)), p.Text))
}
