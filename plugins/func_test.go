package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

func TestAFuncSaysWhenItsAttemptIsRepeated(t *testing.T) {
	for _, c := range []struct {
		err  *plugins.StatusError
		want plan.Result
	}{
		{&plugins.StatusError{Final: true}, plan.Result{Status: plan.Failed, Final: true}},
		{&plugins.StatusError{Status: 7, After: 5}, plan.Result{Status: 7, After: 5}},
	} {
		c.err.Err, c.want.Detail = errors.New("no"), "wrapped: no"
		f := plugins.Func(func(context.Context, *plugins.Task) (any, error) { return nil, fmt.Errorf("wrapped: %w", c.err) })
		if got := f.Run(t.Context(), &plugins.Task{}); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v is %+v, want %+v", c.err, got, c.want)
		}
	}
}
