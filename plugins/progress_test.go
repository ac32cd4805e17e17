package plugins_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

func ExampleTask_Progress() {
	copies := plugins.Func(func(_ context.Context, t *plugins.Task) (any, error) {
		const files = 1000
		for i := range files {
			if err := t.Progress(float64(i)/files, fmt.Sprintf("copied %d of %d", i, files)); err != nil {
				return nil, err
			}
		}
		return files, nil
	})
	var last plan.Progress
	copies.Run(context.Background(), &plugins.Task{Reached: func(p plan.Progress) { last = p }})
	fmt.Println(last)
	// Output: 99% copied 999 of 1000
}

// A secret is hidden before the text is cut: the beginning of one would be seen by no other.
func TestProgressHidesSecretsBeforeItCuts(t *testing.T) {
	var got plan.Progress
	task := plugins.Task{Secrets: []string{strings.Repeat("secret", 50)}, Reached: func(p plan.Progress) { got = p }}
	if err := task.Progress(0.5, "as "+task.Secrets[0]+" does"); err != nil || got.Text != "as *** does" {
		t.Errorf("it says %v, %v", got, err)
	}
	if err := task.Progress(math.NaN(), "x"); err == nil || got.Text != "as *** does" {
		t.Errorf("it says %v, %v", got, err)
	}
	if err := (&plugins.Task{}).Progress(0.5, "to nobody"); err != nil {
		t.Error(err)
	}
}
