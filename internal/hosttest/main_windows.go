package hosttest

// Main does nothing: no worker runs on Windows.
func Main() {}
