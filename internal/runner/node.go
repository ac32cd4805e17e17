package runner

// OfServiceManager are the variables by which a service manager, as systemd, talks to this process
// alone. Its commands do not get them.
var OfServiceManager = []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"}
