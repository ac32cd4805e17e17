package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/plan"
)

const (
	forEver   = "forever"
	byDefault = "default"
)

// keepValue is the flag that says how long a queue's finished tasks of no plan stay: for all of them, or by state.
type keepValue struct {
	said plan.Keep
	text string
	of   []plan.Status // what was said of
}

func (v *keepValue) Type() string   { return "AGE|STATE=AGE" }
func (v *keepValue) String() string { return v.text }

// Set implements pflag.Value.
func (v *keepValue) Set(text string) error {
	v.text = text
	for part := range strings.SplitSeq(text, ",") {
		statuses, age := rules.KeptStatuses, part
		if name, after, by := strings.Cut(part, "="); by {
			codes, _, err := states.Parse([]string{name})
			if err != nil || rules.KeepOf(&v.said, codes[0]) == nil {
				return fmt.Errorf("%q is no state in which tasks end; those are %s", name, strings.Join(keptWords(), ", "))
			}
			statuses, age = []plan.Status{min(codes[0], plan.Failed)}, after
		}
		d, err := keepAge(age)
		if err != nil {
			return err
		}
		for _, s := range statuses {
			*rules.KeepOf(&v.said, s) = plan.Duration(d)
		}
		v.of = append(v.of, statuses...)
	}
	return nil
}

func keepAge(word string) (time.Duration, error) {
	switch word {
	case forEver:
		return -1, nil
	case byDefault, "":
		return 0, nil
	}
	age, err := parseAge(word)
	if err != nil || age <= 0 {
		return 0, errors.New("it is an age, as in 30d, 2w or 12h, forever or default; or one for each state, as in succeeded=1d,failed=30d")
	}
	return age, nil
}

// apply changes what was said, and leaves the other states as they are.
func (v *keepValue) apply(k *plan.Keep) {
	for _, s := range v.of {
		*rules.KeepOf(k, s) = *rules.KeepOf(&v.said, s)
	}
}

func keptWords() []string {
	return api.Each(rules.KeptStatuses, func(s *plan.Status) string { return states.OfStatus(*s) })
}

// keepText writes a Keep as the flag reads it; "" where it says nothing.
func keepText(k plan.Keep) string {
	var parts []string
	var ages []time.Duration
	for i, s := range rules.KeptStatuses {
		if d := time.Duration(*rules.KeepOf(&k, s)); d != 0 {
			parts, ages = append(parts, keptWords()[i]+"="+ageText(d)), append(ages, max(d, -1))
		}
	}
	if slices.Sort(ages); len(ages) == len(rules.KeptStatuses) && ages[0] == ages[len(ages)-1] {
		return ageText(ages[0])
	}
	return strings.Join(parts, ",")
}

// ageText writes an age as parseAge reads it.
func ageText(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return forEver
	case d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
