package procid

import (
	"os"

	"github.com/seed-1177d267/sluice/plan"
)

// Process returns how this process is named in a store.
func Process() plan.Process {
	id, err := Self()
	if err != nil {
		return plan.Process{PID: os.Getpid()} // nobody can tell then that it died, but by its lease
	}
	return plan.Process{PID: id.PID, Identity: id.String()}
}

// Gone reports whether it is certain that the instance's process does not live any more. It can be only for one of this very host.
func Gone(i plan.Instance) bool {
	id, err := Parse(i.Process.Identity)
	if err != nil || i.Process.Identity == "" {
		return false
	}
	alive, known := Alive(id)
	return known && !alive
}
