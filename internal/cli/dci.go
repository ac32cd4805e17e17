package cli

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/dci"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/telemetry"
	"github.com/seed-1177d267/sluice/internal/web"
)

func dciCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dci",
		Short: "Serve the REST API and the pages, until it is stopped",
		Long: "Serve the REST API (docs/api.md) and the pages over a store, until Ctrl-C or SIGTERM. It runs no tasks: nodes do.\n\n" +
			"Whoever reaches it may submit plans, and so run commands as the nodes' users: it listens on this host only.",
		Args:    exactly(0),
		Example: "  sluice dci\n  sluice dci --listen unix:/run/user/1000/sluice.sock\n  sluice dci --store mongodb://db.example.com/sluice",
	}
	listen := cmd.Flags().String("listen", "127.0.0.1:8080", "the `ADDRESS` to listen on: HOST:PORT, or unix:PATH for a socket of your own")
	hosts := cmd.Flags().StringSlice("host", nil, "a `NAME` by which this server is asked, as that of a proxy before it; repeat it for more")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !dci.Loopback(*listen) {
			return usagef("--listen %s: others could reach it and run commands here; listen on 127.0.0.1:8080 or unix:PATH", *listen)
		}
		stop, release := a.interruptible(cmd.Context())
		defer release()
		return a.makingStore(stop.ctx, func(st store.Store) error { return a.serveDCI(stop.ctx, st, *listen, *hosts) })
	}
	return cmd
}

func (a *app) serveDCI(ctx context.Context, st store.Store, address string, hosts []string) error {
	log := slog.New(slog.NewTextHandler(a.Stderr, nil))
	api := v1.New(v1.Config{Store: st, Version: a.version().Version, Log: log, Plugins: a.pluginsOfAPI, Check: a.checkSpec})
	server, err := dci.Listen(dci.Config{Store: st, API: api, Pages: web.New(), Metrics: telemetry.NewMetrics(st, log), Hosts: hosts, Log: log}, address)
	if err != nil {
		return asUsage(err)
	}
	fmt.Fprintf(a.Stderr, "serving %s on %s; every account of this host that reaches it may submit plans, which run commands\n", a.Redact(a.storeURI()), server.URL())
	if dci.Loopback(address) && server.URL()[:4] == "http" {
		fmt.Fprintf(a.Stderr, "the pages: %s/ui/\n", server.URL())
	}
	return server.Run(ctx)
}

func (a *app) pluginsOfAPI() []v1.Plugin {
	names := a.Plugins.Names()
	all := make([]v1.Plugin, len(names))
	for i, name := range names {
		all[i].Name = name
	}
	return all
}
