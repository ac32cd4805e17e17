package plan_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

// The REST API takes the words of the enum tags.
func TestTheWordsOfASchedule(t *testing.T) {
	for field, words := range map[string][]string{"Overlap": plan.Overlaps(), "Missed": plan.Misses()} {
		f, ok := reflect.TypeFor[plan.ScheduleSettings]().FieldByName(field)
		if got, want := f.Tag.Get("enum"), strings.Join(words, ","); !ok || got != want {
			t.Errorf("%s has the words %s, want %s", field, got, want)
		}
	}
}
