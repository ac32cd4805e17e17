package sqlite

import (
	"reflect"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

func TestADefinitionIsReadAsItWasWritten(t *testing.T) {
	for _, want := range []plan.Definition{
		{}, {Subject: "song/7"}, {Subject: `ä "7" \`}, {Subject: "7", Schedule: "nightly"}, {Subject: "7", Finally: true}, {Subject: "7", MaxRescues: 2, Retry: plan.Retry{Attempts: 3}}, {Timeout: 1},
	} {
		b, err := packDefinition(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := unpackDefinition(b, 0, "", 0); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is read as %+v, %v, want %+v", b, got, err, want)
		}
	}
}
