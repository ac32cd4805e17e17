package view

import (
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/report"
)

// Number counts things by their word.
func Number(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return report.Thousands(n) + " " + thing + "s"
}

// Ago says how long a time lies back, and "" for no time.
func Ago(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.Text(now.Sub(t)) + " ago"
}

// Bytes is a number of bytes for people, "" for none that is known.
func Bytes(n *int64) string {
	switch {
	case n == nil:
		return ""
	case *n < 10<<10:
		return Number(int(*n), "byte")
	case *n < 10<<20:
		return fmt.Sprintf("%d KiB", *n>>10)
	}
	return fmt.Sprintf("%d MiB", *n>>20)
}
