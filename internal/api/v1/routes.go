package v1

import (
	"log/slog"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/store/hiding"
	"github.com/seed-1177d267/sluice/plan"
)

// New makes the API. Nothing is asked of the store before a request is, or Run.
func New(c Config) *API {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Store = hiding.New(c.Store)
	a := &API{mux: http.NewServeMux(), c: c, st: c.Store, log: c.Log, events: newHub(c.Store, c.Log), tallies: &tallies{st: c.Store, all: map[plan.PlanID]*tally{}}, ender: newEnder(c.Store, c.End, c.Log), scopes: map[string]auth.Scope{}}
	conf := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title:   "Sluice",
				Version: "1",
				Description: "Plans, tasks, queues and nodes of one store. A path names a plan or a task " +
					"by its id. It may also name a plan by its name (its latest run) or as " +
					"NAME#RUN, with the # written %23. Times are of the store's clock. Errors are " +
					"application/problem+json (RFC 9457).",
			},
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", schemaName),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"token": {Type: "http", Scheme: "bearer", Description: "A token of `sluice access token add`."},
					"basic": {Type: "http", Scheme: "basic", Description: "A user of `sluice access user add`."},
				},
			},
		},
		OpenAPIPath:   api.Root + "/openapi",
		Formats:       map[string]huma.Format{"application/json": asJSON, "json": asJSON},
		DefaultFormat: "application/json",
	}
	conf.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[plan.Duration](), reflect.TypeFor[durationText]())
	conf.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[plan.Causes](), reflect.TypeFor[[]string]())
	a.api = humago.New(a.mux, conf)
	a.plans()
	a.submissions()
	a.sketches()
	a.tasks()
	a.bulk()
	a.queues()
	a.queueGroups()
	a.schedules()
	a.osteTypes()
	a.osteActivities()
	a.osteRecurring()
	a.osteFinished()
	a.disco()
	a.nodes()
	a.feed()
	a.graph()
	a.searches()
	a.groups()
	a.mux.HandleFunc("/", a.unknown)
	return a
}
