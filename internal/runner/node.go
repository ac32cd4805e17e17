package runner

import (
	"os"

	"github.com/seed-1177d267/sluice/internal/runner/procid"
	"github.com/seed-1177d267/sluice/plan"
)

// Process returns how this process is named in a store.
func Process() plan.Process {
	id, err := procid.Self()
	if err != nil {
		return plan.Process{PID: os.Getpid()} // nobody can tell then that it died, but by its lease
	}
	return plan.Process{PID: id.PID, Identity: id.String()}
}

// Gone reports whether it is certain that the instance's process does not live any more. It can be only for one of this very host.
func Gone(i plan.Instance) bool {
	id, err := procid.Parse(i.Process.Identity)
	if err != nil || i.Process.Identity == "" {
		return false
	}
	alive, known := procid.Alive(id)
	return known && !alive
}

// OfServiceManager are the variables by which a service manager, as systemd, talks with this process alone. What it starts does not get them.
var OfServiceManager = []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"}
