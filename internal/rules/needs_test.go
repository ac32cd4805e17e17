package rules_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestTasksWithEdgesThatLeaveAPlanAreNamed(t *testing.T) {
	if err := rules.CheckInside(nil); err != nil {
		t.Errorf("no task: %v", err)
	}
	for tasks, want := range map[int]string{
		1:  "or are a foreach of no plan: t0; finish or cancel them with the sluice that made them, and open the store again",
		10: " t0, t1, t2, t3, t4, t5, t6, t7, t8, t9; finish",
		12: " t8, t9 and 2 more; finish",
	} {
		names := make([]string, tasks)
		for i := range names {
			names[i] = fmt.Sprintf("t%d", i)
		}
		if err := rules.CheckInside(names); !errors.Is(err, plan.ErrUnavailable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d tasks: %v, want %s", tasks, err, want)
		}
	}
}
