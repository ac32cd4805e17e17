package runner

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lowLimit is the limit of processes from which on nothing is counted before a command starts.
const lowLimit = 4096

// beginning has one command at a time look for room. Otherwise two would count the same places.
var beginning sync.Mutex

// foreseen is how many commands have room, by the last count, and until when that is trusted. A count reads about each process
// in /proc, which takes a millisecond on a machine of many. The mutex beginning guards it.
var foreseen struct {
	commands int
	until    time.Time
}

// heedLimit has Go's runtime make fewer threads from the beginning if the user's limit is low.
func heedLimit() {
	for _, l := range limitsOf(unix.RLIMIT_NPROC, nil) {
		fewerProcessors(l.most)
	}
}

// announce tells the guardian of a command that is to be started, if there is room for it.
func announce() (command uint64, err error) {
	limits := limitsOf(unix.RLIMIT_NPROC, ownGroups())
	if len(limits) == 0 {
		return guardian.starting()
	}
	beginning.Lock()
	defer beginning.Unlock()
	if foreseen.commands--; foreseen.commands < 0 || time.Now().After(foreseen.until) {
		if err := findRoom(limits); err != nil {
			return 0, err
		}
	}
	return guardian.starting()
}

// A limit is a low one of processes and threads.
type limit struct {
	most  int
	group string // the folder of the control group that has it; "": the user has it
}

// limitsOf returns the low limits of this process. The kernel does not limit root by the user's.
func limitsOf(resource int, groups []string) (limits []limit) {
	var r unix.Rlimit
	if os.Getuid() != 0 && unix.Getrlimit(resource, &r) == nil && r.Cur < lowLimit {
		limits = append(limits, limit{most: int(r.Cur)})
	}
	for _, folder := range groups {
		if most := number(folder + "/pids.max"); most < lowLimit {
			limits = append(limits, limit{most: most, group: folder})
		}
	}
	return limits
}

// ownGroups are the control groups of this process that have a low limit. A limit that is lowered later is not seen.
var ownGroups = sync.OnceValue(func() []string {
	own, _ := os.ReadFile("/proc/self/cgroup") // without it there is none
	return slices.DeleteFunc(groupsAbove(string(own), "/sys/fs/cgroup"), func(folder string) bool { return number(folder+"/pids.max") >= lowLimit })
})

// groupsAbove returns the folders of the control groups that may limit processes, by the content of /proc/self/cgroup: those of version 2,
// and those of the controller in version 1. A container may see its own group as the root, or not below its path.
func groupsAbove(own, root string) (folders []string) {
	for line := range strings.Lines(own) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) < 3 || f[1] != "" && !slices.Contains(strings.Split(f[1], ","), "pids") {
			continue
		}
		under := filepath.Join(root, f[1])
		for path := filepath.Clean("/" + f[2]); ; path = filepath.Dir(path) {
			folders = append(folders, filepath.Join(under, path))
			if path == "/" {
				break
			}
		}
	}
	return folders
}

// number returns the number in a file of the kernel; the largest one if it has none.
func number(file string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		return math.MaxInt
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil { // "max"
		return math.MaxInt
	}
	return n
}

// findRoom returns why there is no room for another command. If there is, this process has the threads that it may
// come to need, whatever the commands take. It sets foreseen.
func findRoom(limits []limit) error {
	foreseen.commands = 0
	all, err := census()
	if err != nil {
		return nil // the kernel says itself that there is no room
	}
	c, ahead := guardian.crowd(all.groups), math.MaxInt
	c.threads, _ = runtime.ThreadCreateProfile(nil)
	for _, l := range limits {
		c.most, c.taken = l.most, all.user
		if l.group != "" {
			c.taken = number(l.group + "/pids.current")
		}
		c.processors = fewerProcessors(l.most)
		if c.taken < lowLimit && c.full() {
			return &fullError{crowd: c, whose: l.whose(), where: l.where()}
		}
		ahead = min(ahead, c.ahead())
	}
	foreseen.commands, foreseen.until = ahead, time.Now().Add(time.Second)
	makeThreads(c.wants())
	return nil
}

func (l limit) whose() string {
	if l.group == "" {
		return "its user"
	}
	return "its control group"
}

func (l limit) where() string {
	if l.group == "" {
		return "ulimit -u, LimitNPROC"
	}
	return l.group + "/pids.max, TasksMax, --pids-limit"
}

// fewerProcessors returns for how many processors Go has threads: no more than a sixteenth of the limit, so that a large machine does
// not use up a low one.
func fewerProcessors(limit int) int {
	n := runtime.GOMAXPROCS(0)
	if most := max(1, limit/16); n > most {
		runtime.GOMAXPROCS(most)
		return most
	}
	return n
}

// makeThreads has this process have so many threads at least. Go's runtime keeps them all.
func makeThreads(n int) {
	release := make(chan struct{})
	defer close(release)
	for range n {
		if has, _ := runtime.ThreadCreateProfile(nil); has >= n {
			return
		}
		has := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			close(has)
			<-release
		}()
		<-has
	}
}

// crowd returns what is known of the guardian, the commands and another one, by the places of all groups.
func (g *guard) crowd(groups map[int]int) (c crowd) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.process != nil {
		c.guardian = groups[g.process.Pid]
	}
	for _, group := range g.commands {
		c.commands = append(c.commands, groups[group.id]) // of one without a number: 0
	}
	c.commands = append(c.commands, 0)
	return c
}

// places are what the processes of this user take, and the groups among them.
type places struct {
	user   int
	groups map[int]int // by number
}

// census counts the processes and threads of this user, with those that nobody reaped yet. A process that may not be traced belongs to
// root for /proc. It is not counted, but for this one.
func census() (all places, err error) {
	names, err := processes()
	if err != nil {
		return all, err
	}
	all.groups = map[int]int{}
	user, self := uint32(os.Getuid()), strconv.Itoa(os.Getpid())
	for _, name := range names {
		var folder syscall.Stat_t
		if syscall.Stat("/proc/"+name, &folder) != nil || folder.Uid != user && name != self {
			continue
		}
		f := stat("/proc/" + name)
		if len(f) < 18 {
			continue
		}
		threads, _ := strconv.Atoi(f[17])
		all.user += max(1, threads)
		if group, _ := strconv.Atoi(f[2]); group > 0 { // the kernel's own have none
			all.groups[group] += max(1, threads)
		}
	}
	return all, nil
}
