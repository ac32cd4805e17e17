package runner

// OfServiceManager are the variables by which a service manager, as systemd, talks with this process alone. What it starts does not get them.
var OfServiceManager = []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"}
