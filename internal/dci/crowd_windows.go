package dci

// connections is how many connections there may be at once. Files have no limit here that a process could meet.
func connections() int { return mostConnections }
