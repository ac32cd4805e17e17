package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/refusal"
)

// requestForm is the form of what Request digests: another one for each change of it, so that requests of two versions are not compared.
const requestForm = 1

// A request is what is digested of a spec.
type request struct {
	Name, Source string
	OnFailure    OnFailure
	Keep         time.Duration
	Limits       []QueueLimit
	Params       json.RawMessage
	Tasks        []TaskSpec
}

// Request returns a digest of a submission, without its submitter and without secrets of the plan
// and the store. Otherwise a person who knows the key could try one value of a secret after the
// other. The names of the secrets are part of the digest: see SameRequest.
func (s *Spec) Request(secrets Secrets) (string, error) {
	secrets = secrets.And(s.Secrets)
	params, err := jsontext.Marshal(s.Params)
	if err != nil {
		return "", fmt.Errorf("params: %w", err)
	}
	values := secrets.Values(params)
	r := request{HideText(s.Name, values), s.Source, s.OnFailure, s.Keep, s.Limits, secrets.Hide(params, values...), make([]TaskSpec, len(s.Tasks))}
	for i, t := range s.Tasks {
		raw, err := rawObject(t.Params)
		if err != nil {
			return "", fmt.Errorf("task %q: %w", t.Name, err)
		}
		t.Params, t.Description, t.Foreach = secrets.Hide(raw, values...), HideText(t.Description, values), secrets.HideForeach(t.Foreach, values...)
		r.Tasks[i] = t
	}
	names, err := jsontext.Marshal(append([]string{fmt.Sprint(requestForm)}, secrets.names...))
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
func SameRequest(a, b string) error {
	namesOfA, digestOfA, _ := strings.Cut(a, ":")
	namesOfB, digestOfB, _ := strings.Cut(b, ":")
	if namesOfA == namesOfB && digestOfA != digestOfB {
		return refusal.New(ErrConflict, "its tasks, params or settings are others")
	}
	return nil
}
