package telemetry

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Reader is what the figures of a store are read from.
type Reader interface {
	Now(ctx context.Context) (time.Time, error)
	Queues(ctx context.Context) ([]plan.Queue, error)
	CountQueues(ctx context.Context, queues []plan.Queue) error
	Tasks(ctx context.Context, q store.TaskQuery) ([]plan.Task, error)
	Instances(ctx context.Context) ([]plan.Instance, error)
}

// scheduled is a Reader of a store that keeps schedules.
type scheduled interface {
	Schedules(ctx context.Context, q store.ScheduleQuery) ([]plan.Schedule, error)
}

// stockTime is how long a store may take to be counted: Prometheus waits 10 s by default.
const stockTime = 8 * time.Second

var (
	up       = prometheus.NewDesc("sluice_store_up", "Whether the store answered.", nil, nil)
	depth    = prometheus.NewDesc("sluice_queue_tasks", "Tasks of a queue that are queued, or active: claimed or running.", []string{"queue", "state"}, nil)
	threads  = prometheus.NewDesc("sluice_queue_threads", "How many tasks of a queue may be active; +Inf: any number.", []string{"queue"}, nil)
	late     = prometheus.NewDesc("sluice_queue_lateness_seconds", "For how long the task that was queued first has been waiting.", []string{"queue"}, nil)
	nodes    = prometheus.NewDesc("sluice_node_threads", "How many tasks an instance of a node runs at once.", []string{"node", "instance"}, nil)
	occurred = prometheus.NewDesc("sluice_schedule_occurrences_total", "Occurrences of a schedule that were started, and how occurrences ended.", []string{"schedule", "state"}, nil)
	success  = prometheus.NewDesc("sluice_schedule_success_seconds", "Since when no occurrence of a schedule ended with success; since it was made, if none ever did.", []string{"schedule"}, nil)
	silence  = prometheus.NewDesc("sluice_node_silence_seconds", "Since when an instance of a node was not heard of.", []string{"node", "instance"}, nil)
)

// A stock counts what is in a store when it is asked for.
type stock struct {
	r   Reader
	log *slog.Logger
}

// Describe implements prometheus.Collector.
func (*stock) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{up, depth, threads, late, nodes, silence, occurred, success} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s *stock) Collect(ch chan<- prometheus.Metric) {
	ctx, done := context.WithTimeout(context.Background(), stockTime)
	defer done()
	found, err := s.count(ctx)
	if err != nil {
		s.log.Warn("metrics: the store cannot be counted", "error", err)
		ch <- prometheus.MustNewConstMetric(up, prometheus.GaugeValue, 0)
		return
	}
	for _, m := range found {
		ch <- m
	}
	ch <- prometheus.MustNewConstMetric(up, prometheus.GaugeValue, 1)
}

func (s *stock) count(ctx context.Context) (all []prometheus.Metric, err error) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		all = append(all, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...))
	}
	now, err := s.r.Now(ctx)
	if err != nil {
		return nil, err
	}
	queues, err := s.r.Queues(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.r.CountQueues(ctx, queues); err != nil {
		return nil, err
	}
	for i := range queues {
		q := &queues[i]
		gauge(depth, float64(q.Queued), q.Name, "queued")
		gauge(depth, float64(q.Active), q.Name, "active")
		limit := float64(max(0, q.Threads))
		if q.Unlimited {
			limit = math.Inf(1)
		}
		gauge(threads, limit, q.Name)
		waited := 0.0
		if q.Queued > 0 {
			first, err := s.r.Tasks(ctx, store.TaskQuery{Queue: q.ID, Statuses: []plan.Status{plan.Queued}, Limit: 1})
			if err != nil {
				return nil, err
			}
			if len(first) > 0 {
				waited = max(0, now.Sub(first[0].Modified).Seconds())
			}
		}
		gauge(late, waited, q.Name)
	}
	if r, ok := s.r.(scheduled); ok {
		schedules, err := store.AllSchedules(ctx, r.Schedules)
		if err != nil {
			return nil, err
		}
		for i := range schedules {
			sc := &schedules[i]
			for state, n := range map[string]int{"started": sc.Tally.Started, "succeeded": sc.Tally.Succeeded, "failed": sc.Tally.Failed, "skipped": sc.Tally.Skipped} {
				all = append(all, prometheus.MustNewConstMetric(occurred, prometheus.CounterValue, float64(n), sc.Name, state))
			}
			since := sc.Succeeded
			if since.IsZero() {
				since = sc.Created
			}
			gauge(success, max(0, now.Sub(since).Seconds()), sc.Name)
		}
	}
	instances, err := s.r.Instances(ctx)
	for i := range instances {
		n := &instances[i]
		gauge(nodes, float64(n.Threads), string(n.Node), n.ID.String())
		gauge(silence, n.Age.Seconds(), string(n.Node), n.ID.String())
	}
	return all, err
}
