// Fleet is a worker: a node of the store that SLUICE_STORE names, with a plugin in Go beside commands.
// Start as many as you like; on MongoDB, on as many machines: go run ./examples/fleet
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/seed-1177d267/sluice"
	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/exec"
)

func main() {
	exec.GuardMain() // commands do not outlive this process
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	st, err := sluice.Open(ctx, os.Getenv("SLUICE_STORE"))
	if err != nil {
		log.Fatal(err)
	}
	reg := plugins.NewRegistry()
	reg.Register("exec", exec.New(exec.Options{}))
	reg.Register("words", plugins.Func(words))
	if err := den.Run(ctx, st, den.Config{Plugins: reg}); err != nil {
		log.Fatal(err)
	}
}

func words(_ context.Context, t *plugins.Task) (any, error) {
	var params struct{ Text string }
	err := json.Unmarshal(t.Params, &params)
	return len(strings.Fields(params.Text)), err
}
