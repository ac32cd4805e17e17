package listing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// loops makes a folder in which two links lead back up, so that the paths through them have no end.
func loops(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "real/deep"} {
		if err := os.MkdirAll(filepath.Join(dir, "loop", name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a/x.log", "real/deep/y.log", ".hidden.log"} {
		if err := os.WriteFile(filepath.Join(dir, "loop", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"loop/a/up": "..", "loop/b/up": "..", "loop/link": "real", "gone.log": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skipf("links cannot be made here: %v", err)
		}
	}
	return dir
}

func TestLinksAreFollowedOnlyByName(t *testing.T) {
	dir := loops(t)
	for _, c := range []struct{ name, pattern, want string }{
		{"not below **", "loop/**/*.log", "loop/a/x.log loop/real/deep/y.log"},
		{"** at its end has links themselves", "loop/**", "loop loop/a loop/a/up loop/a/x.log loop/b loop/b/up loop/link loop/real loop/real/deep loop/real/deep/y.log"},
		{"one that is named", "loop/link/**/*.log", "loop/link/deep/y.log"},
		{"one that is named behind **", "**/link/deep/*.log", "loop/link/deep/y.log"},
		{"one that the pattern begins with", "loop/a/up/a/*.log", "loop/a/up/a/x.log"},
		{"those that * matches", "loop/*/deep/*.log", "loop/link/deep/y.log loop/real/deep/y.log"},
		{"once for each * behind **", "loop/**/up/*/*.log", "loop/a/up/a/x.log loop/b/up/a/x.log"},
		{"braces over a slash", "loop/{a/*,link/**/*,none}.log", "loop/a/x.log loop/link/deep/y.log"},
		{"braces with ** and with nothing in them", "loop/{**/,}{a,deep}/{*.log,x*}", "loop/a/x.log loop/real/deep/y.log"},
		{"a link to nothing", "*.log", "gone.log"},
		{"a link to nothing by its name", "gone.log", "gone.log"},
		{"a folder by itself", "loop/{a/,b/}", "loop/a loop/b"},
		{"a sign that means itself", `loop/\*`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			got, err := pathsOf(ctx, filepath.FromSlash(c.pattern), dir)
			if s := filepath.ToSlash(strings.Join(got, " ")); err != nil || s != c.want {
				t.Errorf("got %s, %v; want %s", s, err, c.want)
			}
		})
	}
	braces := "{a/b,c/d}"
	if _, err := pathsOf(t.Context(), strings.Repeat(braces, 40), dir); err == nil || !strings.Contains(err.Error(), "more than 1000 patterns") {
		t.Errorf("got error %v, want too many patterns", err)
	}
}

// Each * of the pattern has its up in two folders. To see all that matches, or that nothing does,
// takes very long.
func TestAWalkEndsWhenItsContextDoesOrThereAreTooManyItems(t *testing.T) {
	dir := loops(t)
	many := filepath.Join(dir, "loop", "real", "many")
	if err := os.Mkdir(many, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		if err := os.WriteFile(filepath.Join(many, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("over"))
	defer cancel()
	up := "loop" + strings.Repeat("/*/up", 18)
	if _, err := pathsOf(ctx, up+"/none*", dir); err == nil || err.Error() != "over" {
		t.Errorf("got error %v, want that of the context", err)
	}
	items, err := Read(t.Context(), &plan.Foreach{Glob: up + "/real/many/*"}, dir)
	if want := rules.CheckItems(plan.MaxItems + 1); err == nil || err.Error() != want.Error() {
		t.Errorf("got %d items, %v; want %v", len(items), err, want)
	}
}

func TestAFolderThatCannotBeReadIsNotAnEmptyOne(t *testing.T) {
	dir := loops(t)
	file := filepath.Join(dir, "loop", "a", "x.log")
	for _, c := range []struct{ pattern, want string }{
		{"nosuch/*.csv", "the folder " + filepath.Join(dir, "nosuch") + " does not exist"},
		{"nosuch/**", "the folder " + filepath.Join(dir, "nosuch") + " does not exist"},
		{"loop/nosuch/x.csv", "the folder " + filepath.Join(dir, "loop", "nosuch") + " does not exist"},
		{"loop/a/x.log/*", file + " is not a folder"},
		{"loop/a/x.log/y", "not a directory"},
		{"loop/*/nosuch/*.csv", ""},
		{"loop/x.csv", ""},
		{"*.none", ""},
	} {
		got, err := pathsOf(t.Context(), filepath.FromSlash(c.pattern), dir)
		if len(got) > 0 || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s matches %q, %v; want the error %q", c.pattern, got, err, c.want)
		}
	}
}
