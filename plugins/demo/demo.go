// Package demo is a plugin for demonstrations: it prints, sleeps, fails and returns as its params
// say. Plans that only show an order of tasks use it, and so do imported recordings of workflows.
//
// Its params, all optional, in the order of their effects:
//
//	print   a text, or a list of texts, for its log
//	sleep   how long it runs, as in "1.5s", or a number of seconds
//	fail    how many of the first attempts fail
//	status  with which status they fail, 2 if it is not given; without fail, that of every attempt
//	return  its output
package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// Name is what plans call the plugin.
const Name = "demo"

// Plugin is the plugin.
var Plugin = plugins.Func(run)

type params struct {
	print   []string
	sleep   time.Duration
	fail    int
	status  plan.Status
	returns json.RawMessage
}

// readers read the params by name. Params that come from the node and from parents are not read.
var readers = map[string]func(*params, json.RawMessage) error{
	"print":    readPrint,
	"sleep":    readSleep,
	"fail":     readFail,
	"status":   readStatus,
	"return":   func(p *params, raw json.RawMessage) error { p.returns = raw; return nil },
	"needs":    ignore,
	"args":     ignore,
	"item":     ignore,
	"results":  ignore,
	"failures": ignore,
}

func ignore(*params, json.RawMessage) error { return nil }

func readPrint(p *params, raw json.RawMessage) error {
	var line string
	if json.Unmarshal(raw, &line) == nil {
		p.print = []string{line}
	} else if json.Unmarshal(raw, &p.print) != nil {
		return fmt.Errorf("%s is not a text or a list of texts", raw)
	}
	return nil
}

func readSleep(p *params, raw json.RawMessage) error {
	var seconds float64
	var text string
	var err error
	switch {
	case json.Unmarshal(raw, &seconds) == nil:
		p.sleep = time.Duration(min(seconds*float64(time.Second), math.MaxInt64/2))
	case json.Unmarshal(raw, &text) == nil:
		p.sleep, err = time.ParseDuration(text)
	default:
		err = fmt.Errorf("%s", raw)
	}
	if err != nil || p.sleep < 0 {
		return fmt.Errorf(`%s is not a time to sleep, as in "1.5s", or a number of seconds`, raw)
	}
	return nil
}

func readFail(p *params, raw json.RawMessage) error {
	if json.Unmarshal(raw, &p.fail) != nil || p.fail < 0 {
		return fmt.Errorf("%s is not a number of attempts", raw)
	}
	return nil
}

func readStatus(p *params, raw json.RawMessage) error {
	if json.Unmarshal(raw, &p.status) != nil || p.status < plan.Succeeded {
		return fmt.Errorf("%s is not a status to end with, which is %d or above", raw, int(plan.Succeeded))
	}
	return nil
}

func readParams(raw json.RawMessage) (*params, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("params of %s: %w", Name, err)
	}
	p := new(params)
	for name, value := range all {
		read, ok := readers[name]
		if !ok {
			return nil, fmt.Errorf("params of %s: %q is not known; it has print, sleep, fail, status and return", Name, name)
		}
		if err := read(p, value); err != nil {
			return nil, fmt.Errorf("params of %s: %s: %w", Name, name, err)
		}
	}
	return p, nil
}

func run(ctx context.Context, t *plugins.Task) (any, error) {
	p, err := readParams(t.Params)
	if err != nil {
		return nil, err
	}
	for _, line := range p.print {
		t.Log.Print(line)
	}
	if p.sleep > 0 {
		over := time.NewTimer(p.sleep)
		defer over.Stop()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-over.C:
		}
	}
	switch {
	case t.Attempt <= p.fail:
		return nil, &plugins.StatusError{Status: max(p.status, plan.Failed), Err: fmt.Errorf("attempt %d of the %d that are to fail", t.Attempt, p.fail)}
	case p.fail == 0 && p.status > plan.Succeeded:
		return nil, &plugins.StatusError{Status: p.status, Err: fmt.Errorf("it was told to end with status %d", int(p.status))}
	case p.returns == nil:
		return nil, nil
	}
	return p.returns, nil
}
