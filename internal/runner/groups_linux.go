package runner

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// groupLives reports whether a process of the group lives, or did at some instant after the given
// one. A zombie does not count: its parent has not waited for it, and in a container without init
// it could stay for ever.
func groupLives(group int, after time.Time) bool {
	return syscall.Kill(-group, 0) != syscall.ESRCH && groups.live(group, after)
}

// groups is a list of all process groups, shared by all callers that ask for the same instant.
// Otherwise a node that stops many commands, and its guardian, would read all of /proc for each.
var groups groupList

type groupList struct {
	mu    sync.Mutex
	read  time.Time // when reading it began
	lives map[int]bool
}

// live reports whether the group had a living process at some instant after the one given.
func (g *groupList) live(group int, after time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.read.After(after) {
		g.read = time.Now()
		g.lives = liveGroups()
	}
	return g.lives == nil || g.lives[group]
}

// liveGroups returns the groups that have a living process; nil if /proc cannot be read.
func liveGroups() map[int]bool {
	lives := map[int]bool{}
	if err := eachProcess(func(_ string, group int) { lives[group] = true }); err != nil {
		return nil
	}
	return lives
}

// marked returns the groups of processes that were started with one of the marks in their environment.
func marked(marks []string) []int {
	var found []int
	eachProcess(func(folder string, group int) {
		env, err := os.ReadFile(folder + "/environ")
		if err != nil { // it has gone, or is another user's
			return
		}
		for v := range bytes.SplitSeq(env, []byte{0}) {
			if slices.Contains(marks, string(v)) && !slices.Contains(found, group) {
				found = append(found, group)
			}
		}
	})
	return found
}

// eachProcess calls do for each living process, with its folder in /proc and the number of its group.
func eachProcess(do func(folder string, group int)) error {
	names, err := processes()
	if err != nil {
		return err
	}
	for _, name := range names {
		f := stat("/proc/" + name)
		if len(f) < 3 || f[0] == "Z" || f[0] == "X" {
			continue
		}
		if group, err := strconv.Atoi(f[2]); err == nil {
			do("/proc/"+name, group)
		}
	}
	return nil
}

// processes returns the names of the folders of all processes in /proc.
func processes() (names []string, err error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer proc.Close()
	names, err = proc.Readdirnames(-1)
	return slices.DeleteFunc(names, func(name string) bool { return name[0] < '0' || name[0] > '9' }), err
}

// stat returns what the kernel says of a process, from its state on; nil if it has gone.
func stat(folder string) []string {
	stat, err := os.ReadFile(folder + "/stat")
	if err != nil {
		return nil
	}
	// pid (name) state ppid pgrp …, and the name may hold anything
	return strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
}
