package disco_test

import (
	"fmt"

	"github.com/seed-1177d267/sluice/plugins/disco"
)

// A worker gets no variables of another Disco, but those that its task gives.
func ExampleEnviron() {
	fmt.Println(disco.Environ([]string{"LANG=C", "DISCO_HOME=/opt/disco"}, map[string]string{"LEVEL": "3"}))
	// Output: [LANG=C LEVEL=3]
}

// The name of a job is a folder, and a part of URLs.
func ExampleJobName() {
	fmt.Println(disco.JobName("count-words", "6b0a689f63a83730eb0038c2"))
	// Output: count-words@6b0a689f63a83730eb0038c2
}
