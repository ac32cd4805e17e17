// Package webtest tests the pages in a browser. Debian's chromium, driven over its own protocol,
// opens the real program with its server, its store on SQLite and its nodes. `make test-browser`
// runs the tests, and installs chromium if it is missing. The tests have the build tag browser, so
// that no other test needs a browser.
package webtest
