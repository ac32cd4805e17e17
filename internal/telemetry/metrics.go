// Package telemetry owns what Sluice tells of itself to other programs: figures for Prometheus, and OpenTelemetry traces of plans. It
// watches; nothing depends on it.
package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// Metrics are figures of one process, and of the store at the time when they are asked for. It is a den.Observer.
type Metrics struct {
	reg     *prometheus.Registry
	claimed *prometheus.CounterVec
	ended   *prometheus.CounterVec
	lost    *prometheus.CounterVec
	took    *prometheus.HistogramVec
	plans   *prometheus.CounterVec
	store   *prometheus.HistogramVec
	failed  *prometheus.CounterVec
	asked   *prometheus.HistogramVec
	fired   prometheus.Histogram
}

// NewMetrics makes the figures. r is asked for those of the store, each time; nil: they are left out.
func NewMetrics(r Reader, log *slog.Logger) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	fast := prometheus.ExponentialBuckets(0.0005, 4, 9) // 0.5 ms to 33 s
	m := &Metrics{
		reg:     prometheus.NewRegistry(),
		claimed: counter("sluice_tasks_claimed_total", "Tasks that nodes of this process claimed.", "queue"),
		ended:   counter("sluice_tasks_ended_total", "Attempts of tasks that ended in nodes of this process, by what they became.", "queue", "state"),
		lost:    counter("sluice_tasks_lost_total", "Attempts whose ending was refused, since the task was no longer the node's.", "queue"),
		took:    histogram("sluice_task_seconds", "How long attempts ran inside the node.", prometheus.ExponentialBuckets(0.001, 4, 12), "queue"), // to 70 min
		plans:   counter("sluice_plans_ended_total", "Plans that ended by what nodes of this process did, by how.", "state"),
		store:   histogram("sluice_store_seconds", "How long nodes of this process waited for the store, by what they asked: Turn claims and ends tasks, Sweep puts right what was left.", fast, "call"),
		failed:  counter("sluice_store_errors_total", "Calls of the store that failed.", "call"),
		asked:   histogram("sluice_http_seconds", "How long requests took.", fast, "route", "code"),
	}
	m.fired = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "sluice_schedule_lateness_seconds", Help: "How late nodes of this process started occurrences of schedules.", Buckets: fast})
	m.reg.MustRegister(m.fired, m.claimed, m.ended, m.lost, m.took, m.plans, m.store, m.failed, m.asked,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, how := range []plan.Lifecycle{plan.PlanSucceeded, plan.PlanFailed, plan.PlanCancelled} {
		m.plans.WithLabelValues(how.String()) // a series that begins at 1 has no increase for Prometheus
	}
	if r != nil {
		m.reg.MustRegister(&stock{r: r, log: log})
	}
	return m
}

// Handler answers with the figures, in Prometheus's format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.reg, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4})
}

// Requests counts the requests that a handler answers, by the pattern of its mux.
func (m *Metrics) Requests(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &status{ResponseWriter: w, code: http.StatusOK}
		began := time.Now()
		defer func() { m.asked.WithLabelValues(r.Pattern, strconv.Itoa(s.code)).Observe(time.Since(began).Seconds()) }()
		h.ServeHTTP(s, r)
	})
}

// A status remembers the answer's.
type status struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Claimed implements den.Observer, as do the following.
func (m *Metrics) Claimed(t *protocol.ClaimedTask) {
	m.claimed.WithLabelValues(t.QueueName).Inc()
	// Series for alerts begin at 0: Prometheus sees no increase in a series that begins at 1.
	m.lost.WithLabelValues(t.QueueName)
	m.ended.WithLabelValues(t.QueueName, plan.Failed.String())
}

// Ended counts an attempt by what the task became.
func (m *Metrics) Ended(t *protocol.ClaimedTask, e *protocol.Ending, ran time.Duration) {
	m.ended.WithLabelValues(t.QueueName, plan.State(e.Status, e.Reason)).Inc()
	if ran >= 0 {
		m.took.WithLabelValues(t.QueueName).Observe(ran.Seconds())
	}
}

// Lost counts an attempt that nobody wants any more.
func (m *Metrics) Lost(t *protocol.ClaimedTask) { m.lost.WithLabelValues(t.QueueName).Inc() }

// PlanEnded counts a plan by how it ended.
func (m *Metrics) PlanEnded(p protocol.EndedPlan) { m.plans.WithLabelValues(p.State.String()).Inc() }

// Fired counts an occurrence of a schedule that was started so long after its instant.
func (m *Metrics) Fired(late time.Duration) { m.fired.Observe(late.Seconds()) }

// Asked counts a call of the store.
func (m *Metrics) Asked(call string, took time.Duration, err error) {
	m.store.WithLabelValues(call).Observe(took.Seconds())
	if err != nil && !errors.Is(err, context.Canceled) {
		m.failed.WithLabelValues(call).Inc()
	}
}
