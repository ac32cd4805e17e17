package compiler

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/plan"
)

// requestForm is the form of what Request digests: another one for each change of it, so that requests of two versions are not compared.
const requestForm = 1

// A request is what is digested of a spec.
type request struct {
	Name, Source string
	OnFailure    plan.OnFailure
	Overlap      plan.Overlap `json:",omitempty"`
	Priority     int          `json:",omitempty"`
	Keep         time.Duration
	Timeout      time.Duration `json:",omitempty"`
	Limits       []plan.QueueLimit
	Params       json.RawMessage
	Tasks        []plan.TaskSpec
}

// Request returns a digest of a submission, without its submitter and without secrets of the plan
// and the store. Otherwise a person who knows the key could try one value of a secret after the
// other. The names of the secrets are part of the digest: see SameRequest.
func Request(s *plan.Spec, secrets secret.Names) (string, error) {
	secrets = secrets.And(s.Secrets)
	params, err := jsontext.Marshal(s.Params)
	if err != nil {
		return "", fmt.Errorf("params: %w", err)
	}
	values := secrets.Values(params)
	r := request{secret.HideText(s.Name, values), s.Source, s.OnFailure, s.Overlap, s.Priority, s.Keep, s.Timeout, s.Limits, secrets.Hide(params, values...), make([]plan.TaskSpec, len(s.Tasks))}
	for i, t := range s.Tasks {
		raw, err := rawObject(t.Params)
		if err != nil {
			return "", fmt.Errorf("task %q: %w", t.Name, err)
		}
		t.Params, t.Description, t.Foreach = secrets.Hide(raw, values...), secret.HideText(t.Description, values), secrets.HideForeach(t.Foreach, values...)
		t.Subject = secret.HideText(t.Subject, values)
		r.Tasks[i] = t
	}
	names, err := jsontext.Marshal(append([]string{fmt.Sprint(requestForm)}, secrets.All()...))
	if err != nil {
		return "", err
	}
	whole, err := jsontext.Marshal(r)
	if err != nil {
		return "", err
	}
	return digest(names) + ":" + digest(whole), nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// SameRequest returns ErrConflict for a request that differs from the other, both as Request
// returns them. It does not compare requests if one was not kept. It does not compare requests
// between which other names became secret, because the answer would tell whether a guessed value is
// right.
func SameRequest(a, b string) (compared bool, err error) {
	namesOfA, digestOfA, _ := strings.Cut(a, ":")
	namesOfB, digestOfB, _ := strings.Cut(b, ":")
	if namesOfA != namesOfB {
		return false, nil
	}
	if digestOfA != digestOfB {
		return true, refusal.New(plan.ErrConflict, "its tasks, params or settings are others")
	}
	return a != "", nil
}
