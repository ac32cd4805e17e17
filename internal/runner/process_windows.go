package runner

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/seed-1177d267/sluice/plugins"
)

// GuardGrace is 0: what a node left behind is ended with it.
const GuardGrace time.Duration = 0

// GuardMain does nothing: here job objects end what a node leaves behind.
func GuardMain() {}

// Guarded reports whether GuardMain was called, or need not be.
func Guarded() bool { return true }

// Lease does nothing: Windows has no signal that stops a process.
func Lease(time.Duration) {}

// process is a command that was started, and the job object that has all its processes in it.
type process struct {
	process *os.Process
	state   *os.ProcessState
	err     error
	job     windows.Handle
}

// start starts the program with those files as its standard streams. A nil stdin reads nothing.
func start(cmd *Command, program string, files [3]*os.File) (*process, error) {
	if files[0] == nil {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return nil, err
		}
		defer null.Close()
		files[0] = null
	}
	job, err := newJob()
	if err != nil {
		return nil, err
	}
	p := &process{job: job}
	// It is started suspended, so that it has no children before it is in its job.
	p.process, err = os.StartProcess(program, cmd.Args, &os.ProcAttr{
		Dir:   cmd.Dir,
		Env:   cmd.Env,
		Files: files[:],
		Sys: &windows.SysProcAttr{
			HideWindow:    true,
			CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NO_WINDOW | windows.CREATE_NEW_PROCESS_GROUP,
		},
	})
	if err == nil {
		if err = p.enter(); err == nil {
			return p, nil
		}
		p.process.Kill()
		p.process.Wait()
	}
	windows.CloseHandle(job)
	return nil, err
}

// newJob returns a job object whose processes end when its last handle is closed, as it is when this process dies.
func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, os.NewSyscallError("CreateJobObject", err)
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		windows.CloseHandle(job)
		return 0, os.NewSyscallError("SetInformationJobObject", err)
	}
	return job, nil
}

// enter puts the suspended process into its job and lets it go.
func (p *process) enter() error {
	var err error
	if withErr := p.process.WithHandle(func(h uintptr) {
		err = os.NewSyscallError("AssignProcessToJobObject", windows.AssignProcessToJobObject(p.job, windows.Handle(h)))
	}); withErr != nil || err != nil {
		return errors.Join(withErr, err)
	}
	return resume(uint32(p.process.Pid))
}

// resume lets the threads of a suspended process run; it has one.
func resume(pid uint32) error {
	all, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return os.NewSyscallError("CreateToolhelp32Snapshot", err)
	}
	defer windows.CloseHandle(all)
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(all, &entry); err == nil; err = windows.Thread32Next(all, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return os.NewSyscallError("OpenThread", err)
		}
		_, err = windows.ResumeThread(thread)
		windows.CloseHandle(thread)
		return os.NewSyscallError("ResumeThread", err)
	}
	return fmt.Errorf("process %d has no thread: %w", pid, err)
}

// terminate ends the job: there is no signal that asks for it.
func (p *process) terminate() { p.kill() }

// kill ends the job.
func (p *process) kill() { windows.TerminateJobObject(p.job, 1) }

// await returns when the process has exited.
func (p *process) await() { p.state, p.err = p.process.Wait() }

// reap says, after await, how the process exited.
func (p *process) reap() (code int, signal string, err error) {
	if p.err != nil {
		return -1, "", p.err
	}
	return p.state.ExitCode(), "", nil
}

// jobAccounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION of winnt.h, which x/sys/windows does not have.
type jobAccounting struct {
	_               [4]int64 // user and kernel times
	_               uint32   // page faults
	_               uint32   // processes ever
	activeProcesses uint32
	_               uint32 // processes ended by a limit
}

// jobBasicAccounting is JobObjectBasicAccountingInformation of winnt.h.
const jobBasicAccounting = 1

// gone waits until no process of the job is left, at most for d, and reports whether that is so.
func (p *process) gone(d time.Duration) bool {
	deadline := time.Now().Add(d)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		var a jobAccounting
		err := windows.QueryInformationJobObject(p.job, jobBasicAccounting, uintptr(unsafe.Pointer(&a)), uint32(unsafe.Sizeof(a)), nil)
		if err != nil || a.activeProcesses == 0 {
			return true
		}
		left := time.Until(deadline)
		if left <= 0 {
			return false
		}
		time.Sleep(min(pause, left))
	}
}

// release closes the process after everything else.
func (p *process) release() { windows.CloseHandle(p.job) }

// pipe returns the two ends of a pipe.
func pipe() (r, w *os.File, err error) { return os.Pipe() }

// lookup returns the path of the command's program: as it is, if it names a folder, else by this process's PATH.
func lookup(cmd *Command) (string, error) {
	if len(cmd.Args) == 0 || cmd.Args[0] == "" {
		return "", errors.New("the command is empty: name a program to run")
	}
	program, err := exec.LookPath(cmd.Args[0])
	if err != nil {
		return "", plugins.NotBegun(fmt.Errorf("command %q: %w on this node: install it, or give the program's full path", cmd.Args[0], err))
	}
	return program, nil
}

// explain says why the command could not be started, and what to do.
func explain(cmd *Command, program string, err error) error {
	if cmd.Dir != "" {
		if info, err := os.Stat(cmd.Dir); err != nil || !info.IsDir() {
			return fmt.Errorf("folder %q to run %q in is not there on this node: create it, or change dir", cmd.Dir, cmd.Args[0])
		}
	}
	return fmt.Errorf("command %q: %w", program, err)
}

// executable is true: whether a file is a program is told by its name.
func executable(string) bool { return true }
