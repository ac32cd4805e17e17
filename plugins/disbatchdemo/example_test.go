package disbatchdemo_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/disbatchdemo"
)

// Each character of commands is one: a prints a line, and c fails.
func Example() {
	reg := plugins.NewRegistry()
	reg.Register(disbatchdemo.Name, disbatchdemo.Plugin)
	p, _ := reg.Get("Disbatch::Plugin::Demo")
	for _, commands := range []string{"a", "ac"} {
		var log plugins.Log
		params, _ := json.Marshal(map[string]any{"commands": commands, "noreport": true})
		r := p.Run(context.Background(), &plugins.Task{Params: params, Log: &log})
		fmt.Println(r.Status, len(log.Drain()) > 0)
	}
	// Output:
	// succeeded true
	// failed true
}
