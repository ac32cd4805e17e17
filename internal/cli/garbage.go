package cli

// nodeSlack is the size of slack in bytes. A heap may grow to twice what is live, so the collector runs 16 MiB later.
const nodeSlack = 8 << 20

// slack is memory that nobody touches, so the system never provides it. The collector counts it as live.
var slack []byte

// collectSeldom has the garbage collector of a process that runs a node run less often. A node's live heap is a few MiB, so the collector
// would run after each few MiB that tasks allocate. A percentage, as of debug.SetGCPercent, would let a large heap grow as well.
func collectSeldom() {
	if slack == nil {
		slack = make([]byte, nodeSlack)
	}
}
