package host_test

import (
	"fmt"
	"strings"

	"github.com/seed-1177d267/sluice/plugins/disco/host"
)

// Inputs can be given as lines of JSON, as sluice disco run reads them.
func ExampleFeed() {
	list := &host.List{}
	err := host.Feed(strings.NewReader(`{"label": 0, "urls": ["raw://one"]}
{"label": 1, "urls": ["ftp://two"]}
`), list)
	fmt.Println(err)
	// Output: line 2 of the inputs: replica "ftp://two": its scheme is unknown; a replica begins with disco://, dir://, http://, https:// or raw://
}
