package v1

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store/hiding"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

// SubmitPlan is a plan file and the settings for reading it.
type SubmitPlan struct {
	Param    []string `query:"param,explode" doc:"A value for a param of the plan, as NAME=VALUE; may be repeated."`
	FailFast bool     `query:"fail_fast" doc:"Start nothing more when a task has failed, whatever the file says."`
	Dir      string   `query:"dir" doc:"The absolute path of the folder, on the nodes' hosts, where commands run and relative paths in the file start. The default is /, and notes say so if it matters."`
	Check    bool     `query:"check" doc:"Only report the mistakes of the file, or describe it; submit nothing. A param that has to be given may be missing."`
	Key      string   `header:"Idempotency-Key" maxLength:"255" doc:"Any text of the caller. The same request, repeated with the key, submits nothing again, and completes a submission that stopped half-way."`
	Type     string   `header:"Content-Type" hidden:"true"`
	RawBody  []byte   `contentType:"application/yaml" doc:"A plan file: YAML, and so JSON. Or a job pack of Disco, of at most 256 MiB, which is known by its first bytes whatever the content type is."`
}

// submitForm is the other body that a submission may have.
const submitForm = "multipart/form-data"

// formSchema describes the parts of a submission's form.
func formSchema() *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeObject, Required: []string{"plan"},
		Description: "For values that must not be in a URL, because proxies and servers log URLs.",
		Properties: map[string]*huma.Schema{
			"plan": {Type: huma.TypeString, Format: "binary", Description: "A plan file: YAML, and so JSON."},
			"param": {Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}, Description: "A value for a param of the plan, as NAME=VALUE; one part each. It wins over one " +
				"of the query."},
		},
	}
}

// submitAnswer has an api.Submitted, or an api.Checked.
type submitAnswer struct {
	Status   int
	Location string `header:"Location"`
	Body     any
}

func (a *API) submissions() {
	serve(a, endpoint{
		method: "POST", path: "/plans", id: "submit-plan", summary: "Submit a plan file", tag: "plans", scope: Submit, body: fileBody, pack: mayBe, status: http.StatusCreated,
		doc: "The server submits the whole file, or nothing if it has a mistake: then errors has " +
			"each mistake with its line and column. The answer is 200 if the same request used " +
			"the key before. With check it is 200 too, and describes the file. A job pack of Disco " +
			"may stand in place of a file. It has no params and no folder.",
		forms:   map[string]*huma.Schema{submitForm: formSchema()},
		answers: map[int][]any{http.StatusCreated: {api.Submitted{}}, http.StatusOK: {api.Submitted{}, api.Checked{}}},
		errors:  []int{409, 413, 422},
	}, a.submitPlan)
	serve(a, endpoint{
		method: "PUT", path: "/plans/{plan}/pack", id: "put-pack", summary: "Keep the job pack of a plan", tag: "plans", scope: Submit, pack: alwaysIs, errors: []int{404, 409, 413, 422},
		doc: "For the commands that submit job packs to a server: between the begin of a plan and its tasks. The pack goes with the plan.",
	}, a.putPack)
	serve(a, endpoint{
		method: "POST", path: "/plans/{plan}/runs", id: "run-again", summary: "Submit the kept file of a plan again", tag: "plans", scope: Submit, status: http.StatusCreated,
		doc: "A new run of the plan, in the same folder and with the plan's params, secrets " +
			"included, except for those of the request. The plan itself does not change. A plan " +
			"whose file was not kept is a conflict. The answer is 200 if the same request used " +
			"the key before.",
		answers: map[int][]any{http.StatusCreated: {api.Submitted{}}, http.StatusOK: {api.Submitted{}}},
		errors:  []int{404, 409, 422},
	}, a.runAgain)
}

// RunAgain says with what a plan's file is submitted again.
type RunAgain struct {
	ByPlanID
	Key  string `header:"Idempotency-Key" maxLength:"255" doc:"As for the submission of a plan file."`
	Body *struct {
		Params map[string]string `json:"params,omitempty" doc:"Params with a new value: text, or JSON if the file's default is not text."`
	}
}

// runAgain reads the store without its masks: the new run gets the secrets of the old one, which the caller need not know.
func (a *API) runAgain(ctx context.Context, in *RunAgain) (*submitAnswer, error) {
	st := hiding.Of(a.st)
	p, err := st.Plan(ctx, in.Plan)
	if err != nil {
		return nil, err
	}
	kept, err := st.PlanFile(ctx, in.Plan)
	if err != nil {
		return nil, err
	}
	if kept.Text == "" {
		return nil, api.NewProblem(http.StatusConflict, "conflict", "the file of %s was not kept; submit it from the file", p.Title())
	}
	var was map[string]json.RawMessage
	if len(p.Params) > 0 {
		if err := json.Unmarshal(p.Params, &was); err != nil {
			return nil, err
		}
	}
	values := planfile.Texts(was)
	if in.Body != nil {
		maps.Copy(values, in.Body.Params)
	}
	asked := &SubmitPlan{Dir: kept.Dir, FailFast: p.OnFailure == plan.Stop, RawBody: []byte(kept.Text)}
	for name, value := range values {
		asked.Param = append(asked.Param, name+"="+value)
	}
	file, err := a.readPlan(ctx, asked)
	if err != nil {
		return nil, err
	}
	file.spec.Source = p.Source
	return a.submitFile(ctx, file, in.Key)
}

func (a *API) submitPlan(ctx context.Context, in *SubmitPlan) (*submitAnswer, error) {
	if in.Check {
		auth.Unchanged(ctx)
	}
	file, err := a.readSubmitted(ctx, in)
	if err != nil {
		return nil, err
	}
	if in.Check {
		return a.checkPlan(ctx, file)
	}
	return a.submitFile(ctx, file, in.Key)
}

// readSubmitted reads the plan file, or the job pack, of a request.
func (a *API) readSubmitted(ctx context.Context, in *SubmitPlan) (*planFile, error) {
	pack := packOf(ctx)
	switch {
	case pack == nil:
		return a.readPlan(ctx, in)
	case len(in.Param) > 0:
		return nil, api.InvalidAt("query.param", "a job pack has no params; leave them out")
	}
	return pack.read()
}

// submitSpec submits a plan that was read.
func (a *API) submitSpec(ctx context.Context, file *planFile, key string) (made *plan.Plan, repeated bool, err error) {
	file.spec.By = submitter(ctx)
	var p plan.Plan
	if file.pack == nil {
		p, repeated, err = submit.Once(ctx, a.st, file.spec, key, false)
	} else {
		p, repeated, err = submit.WithPack(ctx, a.st, file.spec, file.pack, key)
	}
	switch {
	case repeated && errors.Is(err, plan.ErrConflict):
		return nil, repeated, api.NewProblem(http.StatusUnprocessableEntity, api.CodeRepeated, "%v", err)
	case err != nil && !p.ID.IsZero() && !errors.Is(err, plan.ErrPlanEnded):
		return nil, repeated, fmt.Errorf("%w; nothing of %s runs yet; to continue, send the request again with the same Idempotency-Key, if it had one", err, p.Title())
	case err != nil:
		return nil, repeated, unqueued(err)
	}
	if repeated && p.State != plan.PlanSubmitting { // what was left half-way has been ended
		auth.Unchanged(ctx)
	}
	auth.Changed(ctx, p.ID.String())
	p, err = a.st.Plan(ctx, p.ID)
	return &p, repeated, err
}

// submitFile submits a plan file, or a job pack, that was read.
func (a *API) submitFile(ctx context.Context, file *planFile, key string) (*submitAnswer, error) {
	p, repeated, err := a.submitSpec(ctx, file, key)
	if err != nil {
		return nil, err
	}
	answer, err := a.answerPlan(ctx, p)
	if err != nil {
		return nil, err
	}
	notes, err := a.notesOf(ctx, file)
	if err != nil {
		return nil, err
	}
	out := &submitAnswer{Status: http.StatusCreated, Location: api.Root + "/plans/" + p.ID.String(), Body: api.Submitted{Plan: *answer, Notes: notes}}
	if repeated {
		out.Status = http.StatusOK
	}
	return out, nil
}

// submitter is the user or the token that a request is of; "" where accounts are not told apart.
func submitter(ctx context.Context) string {
	if who := auth.From(ctx); who.By != auth.ByLocal {
		return who.Name
	}
	return ""
}

// unqueued is the problem of a queue that does not do for the plan; any other error is returned as it is.
func unqueued(err error) error {
	if errors.Is(err, submit.ErrQueue) {
		return api.NewProblem(http.StatusConflict, api.CodeQueue, "%v", err)
	}
	return err
}

// checkPlan says of a plan file that is valid what would keep it from being submitted, or what is known of it.
func (a *API) checkPlan(ctx context.Context, file *planFile) (*submitAnswer, error) {
	missing := slices.ContainsFunc(file.params, func(p api.Param) bool { return p.Missing })
	err := submit.Check(ctx, a.st, file.spec, missing)
	if err == nil {
		err = submit.CheckOverlap(ctx, a.st, &plan.Plan{Name: file.spec.Name, Overlap: file.spec.Overlap})
	}
	if err != nil {
		return nil, unqueued(err)
	}
	notes, err := a.notesOf(ctx, file)
	if err != nil {
		return nil, err
	}
	out := api.Checked{Name: file.spec.Name, Tasks: len(file.spec.Tasks), Params: file.params, Notes: nonNil(notes)}
	g := file.spec.Graph()
	out.Needs, out.Levels = g.Needs(), g.Levels()
	return &submitAnswer{Status: http.StatusOK, Body: out}, nil
}

// A planFile is one that was read, or a job pack.
type planFile struct {
	spec   *plan.Spec
	pack   *submit.Pack // nil: it is a file
	params []api.Param
	notes  []api.Note
}

// notesOf adds what the plan meets in the store to what the file alone tells.
func (a *API) notesOf(ctx context.Context, file *planFile) ([]api.Note, error) {
	notes := file.notes
	met, err := submit.Notes(ctx, a.st, file.spec)
	for _, n := range met {
		notes = append(notes, api.Note{Message: n.Text, Do: placeOf(ctx).Command(n.Do)})
	}
	return notes, err
}

// readParams adds params, each as NAME=VALUE. The value of one that is not is not told: it may be a secret.
func readParams(values map[string]string, location string, words []string) error {
	for i, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return api.Invalid("%s[%d]: write NAME=VALUE", location, i)
		}
		if _, twice := values[name]; twice {
			return api.Invalid("%s[%d]: %s is given twice; give it one value", location, i, name)
		}
		values[name] = value
	}
	return nil
}

// body returns the plan file of a request, and the params that are in a form with it.
func (in *SubmitPlan) body() (file []byte, params []string, err error) {
	kind, more, err := mime.ParseMediaType(in.Type)
	if err != nil || kind != submitForm {
		return in.RawBody, nil, nil
	}
	form := multipart.NewReader(bytes.NewReader(in.RawBody), more["boundary"])
	for {
		part, err := form.NextPart()
		if err == io.EOF {
			return file, params, nil
		}
		var text []byte
		if err == nil {
			text, err = io.ReadAll(part)
		}
		switch {
		case err != nil:
			return nil, nil, api.Invalid("body: the form cannot be read: %v", err)
		case part.FormName() == "param":
			params = append(params, string(text))
		case part.FormName() != "plan":
			return nil, nil, api.Invalid("body.%s: the form has no such part; it has plan and param", part.FormName())
		case file != nil:
			return nil, nil, api.Invalid("body.plan: it is there twice; one request submits one plan")
		default:
			file = append([]byte{}, text...)
		}
	}
}

// noFolder is noted of a file whose tasks depend on a folder that nobody gave.
const noFolder = "the plan was given no folder, so its commands run in / and relative paths start there; give one, as in dir=/srv/nightly"

// readPlan reads the file of a request. The mistakes in it are one problem that names each place.
func (a *API) readPlan(ctx context.Context, in *SubmitPlan) (*planFile, error) {
	file := &planFile{}
	dir, unplaced := in.Dir, ""
	if dir == "" {
		dir, unplaced = "/", noFolder
	}
	if !filepath.IsAbs(dir) {
		return nil, api.Invalid("query.dir: %q is not an absolute path", in.Dir)
	}
	values := map[string]string{}
	if err := readParams(values, "query.param", in.Param); err != nil {
		return nil, err
	}
	text, params, err := in.body()
	if err == nil {
		err = readParams(values, "body.param", params)
	}
	if err != nil {
		return nil, err
	}
	if len(text) == 0 {
		return nil, api.Invalid("body: a plan file is expected, and there is nothing")
	}
	queues, err := a.st.Queues(ctx)
	if err != nil {
		return nil, err
	}
	var declared []planfile.Param
	spec, err := planfile.Parse("plan", text, planfile.Options{
		Given: "param=", Secrets: secret.Of(queues),
		Params: values, Declared: &declared, Draft: in.Check, Dir: dir, Unplaced: unplaced,
		Check: a.c.Check,
		Notes: func(spec *plan.Spec) plan.Problems { return a.fileNotes(spec, in.FailFast) },
		Note: func(e planfile.Error) {
			n := api.Note{Message: e.Message, Line: e.Line, Column: e.Column}
			if strings.HasPrefix(e.Message, noFolder) {
				n.Give = "dir"
			}
			file.notes = append(file.notes, n)
		},
	})
	if err != nil {
		return nil, fileProblem(err, "body", "query.param")
	}
	if in.FailFast {
		spec.OnFailure = plan.Stop
	}
	file.spec = spec
	file.params = ParamsOf(declared, values)
	return file, nil
}

// ParamsOf returns what a plan file says of its params, some of which are given. It leaves out the
// defaults of secret params.
func ParamsOf(declared []planfile.Param, given map[string]string) []api.Param {
	params := make([]api.Param, len(declared))
	for i, d := range declared {
		_, has := given[d.Name]
		params[i] = api.Param{Name: d.Name, Default: d.Default, Missing: d.Default == nil && !has, Secret: d.Secret, Choices: d.Choices, About: d.About}
		if d.Secret {
			params[i].Default = nil
		}
	}
	return params
}

// fileProblem is the problem of a plan file that is not valid. It names each place: in the file, which
// is at one location of the request, or among its params, which are at another.
func fileProblem(err error, file, params string) *api.Problem {
	placed, ok := errors.AsType[planfile.Errors](err)
	if !ok {
		return api.Invalid("the plan file is not valid: %v", err)
	}
	p := api.Invalid("the plan file is not valid:\n%v", err)
	for _, e := range placed {
		f := api.Field{Message: e.Message, Location: file, Line: e.Line, Column: e.Column}
		if e.Line == 0 { // what is wrong is not in the file
			f.Location = params
		}
		p.Fields = append(p.Fields, f)
	}
	return p
}

// fileNotes returns what is probably not meant in a valid plan.
func (a *API) fileNotes(spec *plan.Spec, failFast bool) plan.Problems {
	as := *spec
	if failFast {
		as.OnFailure = plan.Stop
	}
	notes := compiler.Notes(&as)
	if a.c.Notes != nil {
		notes = append(notes, a.c.Notes(spec)...)
	}
	return notes
}
