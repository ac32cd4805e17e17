package plan

import (
	"testing"
	"time"
)

func TestRegistered(t *testing.T) {
	there, left := InstanceID{NewID(time.Now())}, InstanceID{NewID(time.Now())}
	r := Registered{there: true}
	for _, c := range []struct {
		name  string
		owner InstanceID
		gone  bool
	}{
		{"an instance that is registered has what it owns", there, false},
		{"an instance that is not registered is gone", left, true},
		{"what has no owner has lost none", InstanceID{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := r.Gone(c.owner); got != c.gone {
				t.Errorf("the owner is gone: %v, want %v", got, c.gone)
			}
		})
	}
}
