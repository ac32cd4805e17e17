package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/mend"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// touched reports whether the file that a plan came from was written to since, as far as that can be told from here.
func touched(p *plan.Plan) bool {
	info, err := os.Stat(p.Source)
	return err == nil && info.ModTime().After(p.Created)
}

// lasts reports whether a plan file can be read again, which may have come through a pipe.
func lasts(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// noteChanged notes that the file of a plan has changed since, or that the plan has other params. A
// retry of the selected tasks does not run these changes. The tasks are those of the plan, with their params.
// flags are those of the retry.
func (a *app) noteChanged(ctx context.Context, r store.Reader, p *plan.Plan, tasks []plan.Task, selected []rules.Retried, flags ...string) error {
	path, file, err := a.readSource(ctx, r, p, tasks)
	if err != nil {
		return err
	}
	changed := touched(p)
	switch {
	case file != nil && (!changed || file.samePlan(tasks)):
		a.noteOldParams(file, tasks, taken(selected))
	case changed:
		do := "to take the changes add --with " + hint.Quoted(path)
		if file != nil && !file.fits(selected) { // of a file that has mistakes by now, the retry says which
			if names, ok := file.toName(); ok {
				if len(names) > 0 {
					names = append(names, "--downstream")
				}
				do = "to take the changes: " + a.command(slices.Concat([]string{"plan", "retry", p.Title()}, names, []string{"--with", path}, flags)...)
			} else {
				do = "to run them with the changes submit the plan again"
			}
		}
		a.note("%s has changed since %s was submitted, and the tasks are as they were then: %s", path, p.Title(), do)
	}
	if changed && file != nil {
		if stays := file.stays("--with " + hint.Quoted(path) + " "); stays != "" {
			a.note("%s", stays)
		}
	}
	return nil
}

// noteEdited is noteChanged for a plan that continues: the rest of it runs as it was submitted.
// Only a plan that has ended can be changed.
func (a *app) noteEdited(ctx context.Context, st store.Store, p *plan.Plan) error {
	if p.Closing != plan.Open {
		return nil
	}
	path, file, err := a.changedSource(ctx, st, p)
	if path != "" {
		then := "and then: " + a.command("plan", "retry", p.Title(), "--with", path, "--run")
		if file != nil && !file.fits(unsucceeded(file.stored)) {
			then = "and submit it again"
		}
		a.note("%s has changed since %s was submitted, and what is left runs as it was then; to run it with the changes: %s, %s",
			path, p.Title(), a.command("plan", "cancel", p.Title()), then)
	}
	return err
}

// changedSource returns the name of the plan's file, and the file, if it has other tasks by now than the plan. The name is "" if the tasks are
// the same, or if there is no such file here. The file is nil if it is no longer that plan.
func (a *app) changedSource(ctx context.Context, st store.Store, p *plan.Plan) (string, *fileAgain, error) {
	if !lasts(p.Source) || !touched(p) {
		return "", nil, nil
	}
	r, p, err := unhidden(ctx, st, p)
	if err != nil {
		return "", nil, err
	}
	tasks, err := tasksOf(ctx, r, p)
	if err != nil {
		return "", nil, err
	}
	path, file, err := a.readSource(ctx, r, p, tasks)
	if err != nil || file != nil && file.samePlan(tasks) {
		return "", nil, err
	}
	return path, file, nil
}

// mostToName is the most tasks that a command for a retry names.
const mostToName = 8

// toName returns the tasks that a retry with the file names, with --downstream, since the file changes what succeeded. It names none if the retry
// of what did not succeed takes the changes. It reports whether there is a retry that takes them, of few names.
func (f *fileAgain) toName() (names []string, ok bool) {
	failed, err := rules.SelectRetry(f.stored, nil, false)
	switch {
	case errors.Is(err, plan.ErrConflict): // nothing failed
	case err != nil:
		return nil, false
	case f.fits(failed):
		return nil, true
	}
	compiled, again := mend.ByName(f.tasks), taken(failed)
	var chosen []plan.TaskID
	add := func(t *plan.Task) { names, chosen = append(names, t.Key()), append(chosen, t.ID) }
	for i := range f.stored {
		t := &f.stored[i]
		now := compiled[t.Name]
		if t.Status != plan.Succeeded || !t.Of.IsZero() || now == nil || again[t.ID] || f.asBefore(t) {
			continue
		}
		if changes, err := mend.Changes(t, now, f.mark, f.secrets, f.hidden...); err == nil && len(changes) > 0 {
			add(t)
		}
	}
	for {
		selected, err := rules.SelectRetry(f.stored, chosen, true)
		if err != nil || len(chosen) == 0 || len(chosen) > mostToName {
			return nil, false
		}
		again = taken(selected)
		left := slices.IndexFunc(f.stored, func(t plan.Task) bool { return rules.OutcomeOfTask(&t) == rules.OutcomeFailed && !again[t.ID] })
		if left < 0 {
			return names, f.fits(selected)
		}
		add(&f.stored[left])
	}
}

// fits reports whether a retry of the selected tasks takes the file.
func (f *fileAgain) fits(selected []rules.Retried) bool {
	_, _, err := f.version().Replacements(selected, false)
	return err == nil
}

// unsucceeded selects what a retry runs again once a plan that goes on is cancelled.
func unsucceeded(tasks []plan.Task) (selected []rules.Retried) {
	for i := range tasks {
		if tasks[i].Status != plan.Succeeded {
			selected = append(selected, rules.Retried{ID: tasks[i].ID})
		}
	}
	return selected
}

// taken returns the tasks that a retry selected.
func taken(selected []rules.Retried) map[plan.TaskID]bool {
	ids := make(map[plan.TaskID]bool, len(selected))
	for _, r := range selected {
		ids[r.ID] = true
	}
	return ids
}

// readSource reads the file of a plan again, with the plan's params. It returns nil if the file is
// no longer that plan. path is how a person here names the file.
func (a *app) readSource(ctx context.Context, r store.Reader, p *plan.Plan, tasks []plan.Task) (path string, file *fileAgain, err error) {
	queues, err := r.Queues(ctx)
	if err != nil {
		return "", nil, err
	}
	path = p.Source
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			path = rel
		}
	}
	file, err = a.readAgain(ctx, r, p, tasks, queues, path, nil, func(need compiler.QueueNeed) (plan.QueueID, error) {
		for i := range queues {
			if queues[i].Name == need.Name {
				return queues[i].ID, nil
			}
		}
		return plan.QueueID{}, nil // that one is not there yet is a change
	})
	if err != nil {
		return path, nil, ctx.Err() // mistakes in the file are reported when it is used
	}
	return path, file, nil
}

// noteOldParams says that a task runs again with other params than the plan has by now: it was kept when they were changed.
func (a *app) noteOldParams(file *fileAgain, tasks []plan.Task, again map[plan.TaskID]bool) {
	compiled := mend.ByName(file.tasks)
	for i := range tasks {
		t := &tasks[i]
		now := compiled[t.Name]
		if now == nil || !t.Of.IsZero() || !again[t.ID] {
			continue
		}
		// A file of --with, which need not be this one, has made the other changes.
		if changes, err := mend.Changes(t, now, file.mark, file.secrets, file.hidden...); err == nil && len(changes) > 0 && file.asBefore(t) {
			a.note("%s runs again as it ran, with other params than %s has by now: %s; to run it with those add --with %s",
				t.Key(), file.p.Title(), strings.Join(changes, ", "), hint.Quoted(file.path))
			return
		}
	}
}

// A fileAgain is a plan file as it is read for a plan that is in the store.
type fileAgain struct {
	p        *plan.Plan
	path     string
	mark     string // for what is cut off values
	text     *planText
	queue    func(compiler.QueueNeed) (plan.QueueID, error)
	was      map[string]json.RawMessage // the params of the plan
	given    map[string]string          // those that a person gives now
	values   map[string]json.RawMessage // the params by these two and the file
	defaults map[string]json.RawMessage // as the file has them
	began    map[string]json.RawMessage // the defaults as the plan was submitted; nil: nobody knows
	tasks    []plan.Task                // compiled with values
	timeout  time.Duration              // of the plan
	stored   []plan.Task                // of the plan, with their params
	secrets  secret.Names               // which are not printed,
	hidden   []string                   // nor these, which they are in params
	earlier  []map[string]*plan.Task    // compiled with params that tasks may have run with, by name
}

// readAgain reads a plan file with the plan's params, unless others are given, and compiles it for
// the plan's id. tasks are those of the plan, with their params. queues are all queues, and queue
// is as for compiler.Compile.
func (a *app) readAgain(
	ctx context.Context, r store.Reader, p *plan.Plan, tasks []plan.Task, queues []plan.Queue, path string, given map[string]string, queue func(compiler.QueueNeed) (plan.QueueID, error),
) (*fileAgain, error) {
	text, err := readText(ctx, p, path)
	if err != nil {
		return nil, err
	}
	f := &fileAgain{p: p, path: path, mark: a.ellipsis(), text: text, given: given, stored: tasks, secrets: secret.Of(queues).And(p.Secrets)}
	asked := map[compiler.QueueNeed]plan.QueueID{} // the file may be compiled more than once
	f.queue = func(need compiler.QueueNeed) (plan.QueueID, error) {
		if id, ok := asked[need]; ok {
			return id, nil
		}
		id, err := queue(need)
		if err == nil {
			asked[need] = id
		}
		return id, err
	}
	if f.was, err = paramsOf(p); err != nil {
		return nil, err
	}
	if err := f.checkShown(); err != nil {
		return nil, err
	}
	values := planfile.Texts(f.was)
	maps.Copy(values, given)
	text.check = a.Plugins.Refused
	var spec *plan.Spec
	if spec, f.defaults, err = text.load(values); err != nil {
		return nil, err
	}
	kept, err := r.PlanFile(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	switch {
	case kept.Text == string(text.data):
		f.began = f.defaults
	case kept.Text != "": // a text that is not valid any more has no known defaults
		_, f.began, _ = (&planText{p: p, path: path, dir: kept.Dir, data: []byte(kept.Text)}).load(planfile.Texts(f.was))
	}
	f.values, f.timeout = spec.Params, spec.Timeout
	now, err := json.Marshal(f.values)
	if err != nil {
		return nil, err
	}
	f.hidden = append(f.secrets.Values(p.Params), f.secrets.Values(now)...)
	_, f.tasks, err = compiler.Again(spec, p.ID, time.Now(), f.queue)
	return f, err
}

// checkShown refuses to continue with params that a server did not show, unless the person gives
// them.
func (f *fileAgain) checkShown() error {
	for _, name := range slices.Sorted(maps.Keys(f.was)) {
		alone, err := json.Marshal(map[string]json.RawMessage{name: f.was[name]})
		if _, now := f.given[name]; now || err != nil || f.secrets.CheckGiven("", alone) == nil {
			continue
		}
		return usagef("param %s of %s is secret, and the server does not show it: give it again, by --param %s=VALUE", name, f.p.Title(), name)
	}
	return nil
}

// paramsOf returns the params of a plan by name.
func paramsOf(p *plan.Plan) (map[string]json.RawMessage, error) {
	params := map[string]json.RawMessage{}
	if len(p.Params) > 0 {
		if err := json.Unmarshal(p.Params, &params); err != nil {
			return nil, fmt.Errorf("the params of %s: %w", p.Title(), err)
		}
	}
	return params, nil
}

// loadAgain loads a plan file with the params that the plan has.
func loadAgain(ctx context.Context, p *plan.Plan, path string) (*plan.Spec, error) {
	params, err := paramsOf(p)
	if err != nil {
		return nil, err
	}
	text, err := readText(ctx, p, path)
	if err != nil {
		return nil, err
	}
	spec, _, err := text.load(planfile.Texts(params))
	return spec, err
}

// A planText is the text of a plan file that is read for a stored plan. It is read once, because a
// pipe gives its content only once.
type planText struct {
	p         *plan.Plan
	path, dir string // dir is where relative paths start
	data      []byte
	check     func(*plan.Spec) plan.Problems // of a plan that is valid; nil: nothing
	choices   map[string]rules.Choices       // of its params, once it was loaded
}

// readText reads the file at path. A pipe has no folder: its relative paths start where those of
// the plan's file do.
func readText(ctx context.Context, p *plan.Plan, path string) (*planText, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, asUsage(fmt.Errorf("plan file %q: %w", path, err))
	}
	t := &planText{p: p, path: path, dir: filepath.Dir(abs)}
	info, err := os.Stat(path)
	switch pipe := err == nil && !info.Mode().IsRegular() || planfile.IsStream(path); {
	case pipe && p.Source != "":
		t.dir = filepath.Dir(p.Source)
	case planfile.IsStream(path):
		if t.dir, err = os.Getwd(); err != nil {
			return nil, err
		}
	}
	t.data, err = plugins.Within(ctx, func() ([]byte, error) { return planfile.Read(path) }) // reading a pipe may never end
	return t, asUsage(err)
}

// load returns the plan of the text with these params, and the defaults that it has for params.
func (t *planText) load(values map[string]string) (*plan.Spec, map[string]json.RawMessage, error) {
	defaults := map[string]json.RawMessage{}
	var declared []planfile.Param
	spec, err := planfile.Parse(t.path, t.data, planfile.Options{Params: values, Defaults: defaults, Declared: &declared, Dir: t.dir, Check: t.check})
	if err != nil {
		return nil, nil, asUsage(err)
	}
	t.choices = planfile.ChoicesOf(declared)
	if spec.Name != t.p.Name {
		return nil, nil, usagef("%s is the plan %q, and %s is not a run of that", t.path, spec.Name, t.p.Title())
	}
	if names, err := secret.CheckNames(spec.Secrets); err != nil || !slices.Equal(names, t.p.Secrets) {
		return nil, nil, usagef("%s keeps other params secret than %s, which was submitted with secrets: [%s]; restore that list, or submit the plan again",
			t.path, t.p.Title(), strings.Join(t.p.Secrets, ", "))
	}
	return spec, defaults, nil
}

// changedParams says which params are not those that the plan had, with both values.
func (f *fileAgain) changedParams() []string {
	var lines []string
	for _, name := range f.names() {
		was, is := f.was[name], f.values[name]
		if !jsontext.Same(was, is) {
			old, now := f.shown(name, was, is)
			lines = append(lines, fmt.Sprintf("param %s is %s now, and was %s", name, now, old))
		}
	}
	return lines
}

// stays names the params that do not have the file's default, or returns "". It leaves out those
// whose default has not changed since the submission: a person gave their value. flags are the other
// flags, next to --param, of a retry that changes that.
func (f *fileAgain) stays(flags string) string {
	var parts []string
	for _, name := range f.names() {
		value, there := f.was[name]
		other, has := f.defaults[name]
		if _, now := f.given[name]; now || !there || !has || jsontext.Same(value, other) || jsontext.Same(f.began[name], other) {
			continue
		}
		old, _ := f.shown(name, value, other)
		word := name + "=VALUE"
		if text := planfile.Texts(map[string]json.RawMessage{name: other})[name]; len(text) <= mostValue && !saysSecret(value) && !saysSecret(other) && !f.secrets.Within(other, name) {
			word = hint.Quoted(name + "=" + text)
		}
		parts = append(parts, fmt.Sprintf("%s %s (for the file's default: %s--param %s)", name, old, flags, word))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("of the params these stay as %s has them, though %s has other defaults: %s", f.p.Title(), f.path, strings.Join(parts, ", "))
}

// names are those of the params that the plan or the file has.
func (f *fileAgain) names() []string {
	names := maps.Clone(f.values)
	maps.Copy(names, f.was)
	return slices.Sorted(maps.Keys(names))
}

// shown writes two values of a param for people; neither, if one says where a secret is: the other may be that secret.
func (f *fileAgain) shown(name string, was, is json.RawMessage) (string, string) {
	was, is = f.secrets.Hide(was), f.secrets.Hide(is)
	if saysSecret(was) || saysSecret(is) || f.secrets.Named(name) {
		return "a value that is not shown", "a value that is not shown"
	}
	text := func(raw json.RawMessage) string {
		if len(raw) == 0 {
			return "unset"
		}
		value, err := jsontext.Decode(raw)
		if err != nil {
			return "?" // what a store has is JSON
		}
		written, _ := jsontext.Marshal(value) // into memory, of what came from JSON
		return cells.Cut(cells.Clean(string(written)), mostValue, f.mark)
	}
	return text(was), text(is)
}

// secret reports whether a value says where a secret is.
func saysSecret(raw json.RawMessage) bool {
	var from map[string]json.RawMessage
	return json.Unmarshal(raw, &from) == nil && (from["from_env"] != nil || from["from_file"] != nil)
}

// samePlan reports whether the file has the plan's timeout, and its tasks with the same definitions. Their params
// may have been others.
func (f *fileAgain) samePlan(tasks []plan.Task) bool {
	old := mend.ByName(tasks)
	if len(old) != len(f.tasks) || f.timeout != f.p.Timeout {
		return false
	}
	names, newNames := mend.NamesOf(tasks), mend.NamesOf(f.tasks) // in another order their ids are those of other tasks
	for i := range f.tasks {
		now := &f.tasks[i]
		t, ok := old[now.Name]
		if !ok || list(t.Needs, func(id plan.TaskID) string { return names[id] }) != list(now.Needs, func(id plan.TaskID) string { return newNames[id] }) {
			return false
		}
		changes, err := mend.Changes(t, now, "", f.secrets, f.hidden...)
		if err != nil || len(changes) > 0 && !f.asBefore(t) {
			return false
		}
	}
	return true
}

// asBefore reports whether a task ran as the file says, with the params of its time. These may be
// the plan's present ones, or those that some command of the plan has among its own.
func (f *fileAgain) asBefore(old *plan.Task) bool {
	if f.earlier == nil {
		f.earlier = f.findEarlier()
	}
	for _, tasks := range f.earlier {
		now := tasks[old.Name]
		if now == nil {
			continue
		}
		if changes, err := mend.Changes(old, now, "", f.secrets, f.hidden...); err == nil && len(changes) == 0 {
			return true
		}
	}
	return false
}

// mostEarlier is with how many sets of params a file is compiled, to find those that tasks ran with.
const mostEarlier = 8

// findEarlier compiles the file with the params that the plan has, and with those that its tasks have of them. It is
// compiled already with its present values, which may be the same.
func (f *fileAgain) findEarlier() []map[string]*plan.Task {
	earlier := []map[string]*plan.Task{}
	seen := map[string]bool{}
	now, _ := json.Marshal(f.values) // as readAgain did
	add := func(values map[string]json.RawMessage) {
		key, err := json.Marshal(values)
		if err != nil || seen[string(key)] || len(seen) >= mostEarlier {
			return
		}
		seen[string(key)] = true
		if string(key) == string(now) {
			earlier = append(earlier, mend.ByName(f.tasks))
			return
		}
		spec, _, err := f.text.load(planfile.Texts(values))
		if err != nil {
			return // the file takes other values by now, and what ran with those is another task
		}
		if _, tasks, err := compiler.Again(spec, f.p.ID, time.Now(), f.queue); err == nil {
			earlier = append(earlier, mend.ByName(tasks))
		}
	}
	add(f.was)
	for i := range f.stored {
		if own, err := ownParams(&f.stored[i], f.was); err == nil && f.stored[i].Status == plan.Succeeded {
			add(own)
		}
	}
	return earlier
}

// ownParams returns the params of a plan with the values that a task has of them, as commands have them for their variables.
func ownParams(t *plan.Task, params map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	var has map[string]json.RawMessage
	if len(t.Params) > 0 {
		if err := json.Unmarshal(t.Params, &has); err != nil {
			return nil, err
		}
	}
	own := maps.Clone(params)
	for name := range params {
		value, ok := has[name]
		if !ok {
			continue
		}
		if t.Template {
			if value, ok = expr.UnquoteJSON(value); !ok {
				continue
			}
		}
		own[name] = value
	}
	return own, nil
}
