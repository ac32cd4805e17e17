package listing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// maxAlternatives bounds what the braces of a pattern may come to that are more than a part of a name.
const maxAlternatives = 1000

// pathsOf returns the paths that match a pattern, sorted. A relative pattern starts in dir, where
// the command runs. As in shells and in GitHub Actions, ** is any number of folders. A name with a
// leading dot matches only a pattern with a dot there. pathsOf ends when ctx does. If more paths
// match than may be items, it returns only some of them, which are also too many.
func pathsOf(ctx context.Context, pattern, dir string) ([]string, error) {
	pattern = filepath.ToSlash(filepath.Clean(pattern))
	if !doublestar.ValidatePattern(pattern) {
		return nil, doublestar.ErrBadPattern
	}
	fixed, rest := doublestar.SplitPattern(pattern)
	from := filepath.FromSlash(fixed)
	relative := dir != "" && !filepath.IsAbs(from)
	if relative {
		from = filepath.Join(dir, from)
	}
	found, err := find(ctx, from, rest)
	if err != nil {
		return nil, err
	}
	for i := range found {
		if !relative {
			break
		}
		if found[i], err = filepath.Rel(dir, found[i]); err != nil {
			return nil, err
		}
	}
	slices.Sort(found)
	return found, nil
}

// find returns the paths below a folder that match a pattern. Unlike in shells, a folder that cannot
// be read is an error: nobody knows what matches in it. So is a folder that is not there, of those
// that the pattern begins with.
func find(ctx context.Context, from, pattern string) ([]string, error) {
	if !strings.ContainsAny(pattern, `*?[{\`) {
		path := filepath.Join(from, pattern)
		if _, err := os.Lstat(path); err == nil { // a link that leads nowhere has its name all the same
			return []string{path}, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, beginning(filepath.Dir(path))
	}
	w := walk{ctx: ctx, hidden: strings.HasPrefix(pattern, ".") || strings.Contains(pattern, "/.")}
	whole := alternatives(pattern, nil)
	if len(whole) > maxAlternatives {
		return nil, fmt.Errorf("its braces make more than %d patterns; use * instead of some", maxAlternatives)
	}
	var begin []place
	for i, p := range whole {
		w.patterns = append(w.patterns, strings.Split(strings.ReplaceAll(p, "//", "/"), "/"))
		begin = w.at(begin, place{i, 0})
	}
	if err := beginning(from); err != nil {
		return nil, err
	}
	if w.ends(begin) {
		w.found = append(w.found, from)
	}
	w.todo = []folder{{from, begin}}
	for len(w.todo) > 0 && !w.tooMany() {
		next := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		if err := w.read(next); err != nil {
			return nil, err
		}
	}
	return w.found, nil
}

// beginning refuses a folder that a pattern begins with, if there is no such folder.
func beginning(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return plugins.NotBegun(fmt.Errorf("the folder %s does not exist; correct the path, or let a task that makes the folder run before", dir))
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", dir)
	}
	return nil
}

// A walk reads each folder that can hold a match exactly once. For each folder it knows all places
// in the patterns that the path has reached. doublestar itself would follow links below ** too.
// That has no end if a link leads to a folder above it, and cannot be stopped. As in bash, **
// enters no folder by a link. A name, or a pattern of one, does, so that each link costs one part
// of a pattern.
type walk struct {
	ctx      context.Context
	patterns [][]string // the parts between slashes
	hidden   bool       // names that begin with a dot count too
	todo     []folder
	found    []string
}

// A folder is to be read, to match its entries at these places.
type folder struct {
	path   string
	places []place
}

// A place is a part of one of the patterns.
type place struct{ pattern, part int }

// tooMany reports whether there are more than items are made of, so that it does not matter how many more.
func (w *walk) tooMany() bool { return len(w.found) > plan.MaxItems }

func (w *walk) part(p place) (text string, last bool) {
	parts := w.patterns[p.pattern]
	return parts[p.part], p.part == len(parts)-1
}

// at adds a place, and what follows it if it can stand for no folder at all.
func (w *walk) at(places []place, p place) []place {
	if slices.Contains(places, p) {
		return places
	}
	places = append(places, p)
	if text, last := w.part(p); text == "**" && !last {
		places = w.at(places, place{p.pattern, p.part + 1})
	}
	return places
}

// ends reports whether a folder that is at these places matches itself: ** may be no folder, and what follows a last slash is nothing.
func (w *walk) ends(places []place) bool {
	return slices.ContainsFunc(places, func(p place) bool {
		text, last := w.part(p)
		return last && (text == "**" || text == "")
	})
}

// read matches what is in a folder, some at a time, as it may be more than fits into memory.
func (w *walk) read(f folder) error {
	dir, err := os.Open(f.path)
	if gone := errors.Is(err, fs.ErrNotExist); gone || w.ctx.Err() != nil { // it was removed after it was found
		return context.Cause(w.ctx)
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		entries, end := dir.ReadDir(256)
		for _, e := range entries {
			if err := w.match(f, e); err != nil {
				return err
			}
		}
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		if end == io.EOF || w.tooMany() {
			return nil
		}
		if end != nil {
			return fmt.Errorf("folder %s: %w", f.path, end)
		}
	}
}

// match takes an entry of a folder if it matches, and has it read if what is in it might.
func (w *walk) match(f folder, e fs.DirEntry) error {
	if !w.hidden && strings.HasPrefix(e.Name(), ".") {
		return nil
	}
	path := filepath.Join(f.path, e.Name())
	matches, linked := false, e.Type()&fs.ModeSymlink != 0
	isFolder := func() (bool, error) {
		if !linked {
			return e.IsDir(), nil
		}
		return leadsToFolder(path)
	}
	var places []place // in it, if it is a folder
	for _, p := range f.places {
		text, last := w.part(p)
		if text == "**" {
			matches = matches || last
			if e.IsDir() {
				places = w.at(places, p)
			}
			continue
		}
		is, err := doublestar.Match(text, e.Name())
		switch {
		case err != nil:
			return err
		case is && last:
			matches = true
		case is:
			folder, err := isFolder()
			if err != nil {
				return err
			}
			if folder {
				places = w.at(places, place{p.pattern, p.part + 1})
			}
		}
	}
	if len(places) > 0 {
		w.todo = append(w.todo, folder{path, places})
	}
	if matches || w.ends(places) {
		w.found = append(w.found, path)
	}
	return nil
}

// leadsToFolder reports whether a link leads to a folder. A link that leads nowhere, or to itself,
// does not.
func leadsToFolder(link string) (bool, error) {
	info, err := os.Stat(link)
	switch {
	case err == nil:
		return info.IsDir(), nil
	case errors.Is(err, fs.ErrPermission):
		return false, err
	}
	return false, nil
}

// alternatives expands the braces of a pattern that contain a slash or a **; other braces are
// matched within a name. If there are too many alternatives, it returns one more than the limit.
func alternatives(pattern string, to []string) []string {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '{':
			inner, after := braces(pattern[i:])
			if after == 0 {
				continue
			}
			after += i
			if group := pattern[i:after]; !strings.Contains(group, "/") && !strings.Contains(group, "**") {
				i = after - 1
				continue
			}
			for _, one := range inner {
				if len(to) > maxAlternatives {
					break
				}
				to = alternatives(pattern[:i]+one+pattern[after:], to)
			}
			return to
		}
	}
	return append(to, pattern)
}

// braces returns what the commas divide in the braces that a text begins with, and where they end; 0 if they do not.
func braces(text string) (inner []string, after int) {
	depth, from := 0, 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '{':
			depth++
		case ',':
			if depth == 1 {
				inner, from = append(inner, text[from:i]), i+1
			}
		case '}':
			if depth--; depth == 0 {
				return append(inner, text[from:i]), i + 1
			}
		}
	}
	return nil, 0
}
