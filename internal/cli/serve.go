package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/api/disbatch"
	"github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/config"
	"github.com/seed-1177d267/sluice/internal/dci"
	"github.com/seed-1177d267/sluice/internal/forsaken"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/hiding"
	"github.com/seed-1177d267/sluice/internal/telemetry"
	"github.com/seed-1177d267/sluice/internal/web"
	"github.com/seed-1177d267/sluice/plan"
)

// dciSettings are the flags of a server.
type dciSettings struct {
	listen               string
	hosts                []string
	access, audit        string
	certificate, private string
	insecure             bool

	spare func(path string) error // see auth.OpenAudit
	plan  plan.PlanID             // whose page is named; zero: that of all plans
}

func serveCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "serve",
		Aliases: []string{"dci"},
		Short:   "Serve the pages and the REST API, until it is stopped",
		Long: "Serve the pages for a browser (docs/pages.md) and the REST API (docs/api.md) over " +
			"a store, until Ctrl-C or SIGTERM. The server runs no tasks: \"sluice worker\" and " +
			"\"sluice plan run\" do.\n" +
			"\n" +
			"Everybody who may submit plans there can run commands as the nodes' users. So " +
			"without --access the server listens on this machine only. docs/access.md tells " +
			"how to let in others.",
		Example: "  sluice serve\n  sluice serve --listen unix:/run/user/1000/sluice.sock\n" +
			"  sluice serve --listen :8443 --access access.json \\\n    --tls-cert cert.pem --tls-key key.pem \\\n    --store mongodb://db.example.com/sluice",
	}
	var s dciSettings
	s.flags(cmd, "listen", "127.0.0.1:8080", "the `ADDRESS` to listen on: HOST:PORT, or unix:PATH for a socket of your own")
	a.allowNetFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.needsStore(cmd, "is such a server", ""); err != nil {
			return err
		}
		stop, release := a.stoppable(cmd.Context(), true)
		defer release()
		log := slog.New(slog.NewTextHandler(a.Stderr, nil))
		s.spare = a.spareLater
		set, err := s.setUp(log)
		if err != nil {
			return err
		}
		defer set.close()
		if a.configFlag != "" {
			if set.conf, err = a.configured(a.configFlag, config.DisbatchWeb); err != nil {
				return err
			}
		}
		return a.makingStore(stop.ctx, func(st store.Store) error {
			server, err := set.server(stop.ctx, a, st, telemetry.NewMetrics(st, log))
			if err != nil {
				return err
			}
			return set.serve(stop.ctx, server)
		})
	}
	return cmd
}

// flags gives a command those flags that say how it serves. listen is the name of the one for the address.
func (s *dciSettings) flags(cmd *cobra.Command, listen, address, usage string) {
	f := cmd.Flags()
	f.StringVar(&s.listen, listen, address, usage)
	f.StringSliceVar(&s.hosts, "host", nil, "another `NAME` of this server, such as that of a proxy in front; may be repeated")
	f.StringVar(&s.access, "access", "", "the access `FILE` of \"sluice access\"")
	f.StringVar(&s.audit, "audit", "", "append the audit log to this `FILE`, as JSON, one line per change")
	f.StringVar(&s.certificate, "tls-cert", "", "the `FILE` of the certificate and its chain, in PEM")
	f.StringVar(&s.private, "tls-key", "", "the `FILE` of its key, in PEM")
	f.BoolVar(&s.insecure, "insecure", false, "listen for other machines without a certificate; passwords then travel unencrypted")
}

// check refuses flags that say how it serves where the one for the address is not given.
func (s *dciSettings) check(flags *pflag.FlagSet, listen string) error {
	for _, name := range []string{"host", "access", "audit", "tls-cert", "tls-key", "insecure"} {
		if s.listen == "" && flags.Changed(name) {
			return usagef("--%s says how it serves: add --%s ADDRESS", name, listen)
		}
	}
	return nil
}

// A dciSetup is what follows from the settings before there is a store.
type dciSetup struct {
	*dciSettings
	log         *slog.Logger
	guard       *auth.Guard
	conf        *config.Config // Disbatch's file; nil: there is none
	access      *auth.File
	audits      *auth.Audit
	certificate *dci.Certificate
	terms       auth.Terms
}

// setUp checks the settings.
func (s *dciSettings) setUp(log *slog.Logger) (set *dciSetup, err error) {
	set = &dciSetup{dciSettings: s, log: log}
	if (s.certificate == "") != (s.private == "") {
		return nil, usagef("--tls-cert and --tls-key go together: give both, or none")
	}
	if s.certificate != "" {
		if set.certificate, err = dci.LoadCertificate(s.certificate, s.private); err != nil {
			return nil, usagef("--tls-cert: %w", err)
		}
	}
	how := auth.Setup{Listen: s.listen, Hosts: s.hosts, TLS: set.certificate != nil, Insecure: s.insecure}
	if s.access != "" {
		if set.access, err = auth.Open(s.access); err != nil {
			return nil, asUsage(err)
		}
		how.Access = set.access.Access()
	}
	if set.terms, err = auth.Check(how); err != nil {
		return nil, asUsage(err)
	}
	if s.audit != "" {
		if set.audits, err = auth.OpenAudit(s.audit, s.spare); err != nil {
			return nil, asUsage(err)
		}
	}
	set.guard, err = auth.New(auth.Config{
		Access: set.access, Listen: s.listen, Hosts: s.hosts, LoginPath: "/ui/login", Home: "/ui/", Log: log, Audit: set.audits,
	})
	if err != nil {
		set.close()
		return nil, err
	}
	return set, nil
}

// serve answers requests until the context ends.
func (s *dciSetup) serve(ctx context.Context, server *dci.Server) error {
	if s.access != nil {
		defer beside(ctx, func(ctx context.Context) { s.access.Watch(ctx, s.log) })()
	}
	return server.Run(ctx)
}

func (s *dciSetup) close() {
	if s.audits != nil {
		_ = s.audits.Close() // each line was written when it happened
	}
}

// beside serves until end is called, for a command that does other work; end returns the error.
func (s *dciSetup) beside(ctx context.Context, server *dci.Server) (end func() error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // who looks may want to see the end
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx, server) }()
	return func() error { stop(); return <-ended }
}

// server listens, and says where.
func (s *dciSetup) server(ctx context.Context, a *app, st store.Store, m *telemetry.Metrics) (*dci.Server, error) {
	version := a.version().Version
	api := v1.New(v1.Config{
		Receiver: a.receiver(),
		Store:    st, Version: version, Log: s.log, Plugins: a.pluginsOfAPI, Check: a.Plugins.Refused, Notes: func(spec *plan.Spec) plan.Problems { return a.pluginNotes(spec, false) }, URI: a.storeAnywhere(),
		End: func(ctx context.Context, p plan.Plan) error {
			_, _, err := forsaken.Config{Store: hiding.Of(st), Version: version}.End(ctx, p)
			return err
		},
	})
	old := disbatch.Config{Store: st, Conf: s.conf, Check: a.Plugins.Refused, Log: s.log}
	if s.conf == nil || len(s.conf.Plugins) == 0 {
		old.Plugins = a.Plugins.Names
	}
	if s.conf == nil || s.conf.Database == "" {
		old.Database = a.Redact(a.storeURI())
	}
	routes, err := disbatch.New(old)
	if err != nil {
		return nil, asUsage(err)
	}
	server, err := dci.Listen(ctx, dci.Config{Store: st, URI: a.storeAnywhere(), API: api, Pages: web.New(), Schema: planfile.Schema(), Disbatch: routes, Foreign: s.conf != nil, Metrics: m, Guard: s.guard, Log: s.log}, s.listen, s.certificate)
	if err != nil {
		return nil, asUsage(err)
	}
	if r, ok := st.(store.Refuser); ok {
		refused, err := r.Refused(ctx)
		for _, text := range refused {
			s.log.Warn("refused by the store", "what", text)
		}
		if err != nil {
			s.log.Error("a search for queues that no node serves failed", "error", err)
		}
	}
	fmt.Fprintf(a.Stderr, "serving %s on %s; %s\n", a.Redact(a.storeURI()), server.URL(), s.terms.Notice)
	if s.terms.Warning != "" {
		fmt.Fprintf(a.Stderr, "%s %s\n", a.paint(a.Stderr).Bad("WARNING:"), s.terms.Warning)
	}
	if strings.HasPrefix(server.URL(), "http") {
		page := ""
		if !s.plan.IsZero() {
			page = "plans/" + s.plan.String()
		}
		fmt.Fprintf(a.Stderr, "the pages: %s/ui/%s\n", server.URL(), page)
	}
	return server, nil
}

func (a *app) pluginsOfAPI() []v1.Plugin {
	return api.Each(a.Plugins.Names(), func(name *string) v1.Plugin { return v1.Plugin{Name: *name} })
}
