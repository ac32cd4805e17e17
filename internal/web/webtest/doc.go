// Package webtest tests the pages in a browser: Debian's chromium, driven over its own protocol, on the real program with its server, its
// store on SQLite and its nodes. `make test-browser` runs it, and installs chromium where it is not there; the tests have the build tag
// browser, so that nothing else needs one.
package webtest
