package plugins_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-1177d267/sluice/plugins"
)

var nothing = plugins.Func(func(context.Context, *plugins.Task) (any, error) { return nil, nil })

func TestNames(t *testing.T) {
	for name, valid := range map[string]bool{
		"exec": true, "Disbatch::Plugin::Demo": true, "copy_mail2": true, "7": true, ":": true,
		"": false, "copy-mail": false, "copy.sh": false, "../exec": false, "a b": false, "exec\n": false, "größe": false,
	} {
		r := plugins.NewRegistry()
		err := r.Add(name, nothing)
		if (err == nil) != valid {
			t.Errorf("%q: %v; valid: %v", name, err, valid)
		}
		if _, there := r.Get(name); there != valid {
			t.Errorf("%q is registered: %v, want %v", name, there, valid)
		}
		if err != nil && !strings.Contains(err.Error(), "letters, digits, _ and :") {
			t.Errorf("%q: %v does not say what a name is made of", name, err)
		}
	}
}

func TestANameIsRegisteredOnce(t *testing.T) {
	r := plugins.NewRegistry()
	r.Register("a", nothing)
	if err := r.Add("a", nothing); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("a second plugin a: %v", err)
	}
	for _, name := range []string{"a", "b-c"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Register(%q) did not panic", name)
				}
			}()
			r.Register(name, nothing)
		}()
	}
	r.Remove("a")
	r.Remove("a")
	if err := r.Add("a", nothing); err != nil {
		t.Error(err)
	}
}

func TestARegistryMayChangeWhileItIsRead(t *testing.T) {
	r := plugins.NewRegistry()
	r.Register("stays", nothing)
	var wg sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		wg.Go(func() {
			for range 1000 {
				r.Register(name, nothing)
				r.Remove(name)
			}
		})
	}
	wg.Go(func() {
		for range 1000 {
			if !slices.Contains(r.Names(), "stays") {
				t.Error("a name that nobody removed is not there")
			}
			r.Get("a")
		}
	})
	wg.Wait()
}
