package view

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

func TestAReporterTellsEachFivePercentOrTenSeconds(t *testing.T) {
	began := time.Now()
	var r Reporter
	var lines []string
	for _, at := range []struct {
		after time.Duration
		plan.Counts
	}{
		{0, plan.Counts{Held: 2011}},
		{500 * time.Millisecond, plan.Counts{Succeeded: 300, Running: 8, Queued: 1703}}, // it is too soon
		{10 * time.Second, plan.Counts{Succeeded: 1197, Failed: 3, Running: 8, Queued: 803}},
		{12 * time.Second, plan.Counts{Succeeded: 1207, Failed: 3, Running: 8, Queued: 793}}, // little has changed
		{21 * time.Second, plan.Counts{Succeeded: 1217, Failed: 3, Running: 8, Queued: 783}},
		{60 * time.Second, plan.Counts{Succeeded: 1217, Failed: 3, Running: 8, Queued: 783}}, // nothing has
		{61 * time.Second, plan.Counts{Succeeded: 1900, Failed: 3, Skipped: 107, Running: 1}},
		{62 * time.Second, plan.Counts{Succeeded: 1901, Failed: 3, Skipped: 107}}, // the verdict follows
	} {
		if line := r.Line(at.Counts, began.Add(at.after)); line != "" {
			lines = append(lines, line)
		}
	}
	want := []string{
		"1,200 of 2,011 (59%), 3 failed, about 7s left",
		"1,220 of 2,011 (60%), 3 failed, about 14s left",
		"2,010 of 2,011 (99%), 3 failed",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
}
