//go:build unix

package main_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// A server runs no tasks: what its own process would lack is for nodes to have.
func TestAServerTakesAPlanWhoseSecretsNodesHave(t *testing.T) {
	t.Parallel()
	s := newSite(t, "sqlite:"+filepath.Join(t.TempDir(), "sluice.db"))
	url := s.server()
	const file = "plan: p\ntasks: {a: {run: 'echo $X', env: {X: {from_env: ONLY_NODES_HAVE_IT}, Y: {from_file: /only/nodes/have/it}}}}\n"
	for query, want := range map[string]int{"?check=true": http.StatusOK, "": http.StatusCreated} {
		a, err := http.Post(url+"/api/v1/plans"+query, "application/yaml", strings.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if a.StatusCode != want {
			t.Errorf("POST /plans%s: %s, want %d", query, a.Status, want)
		}
	}
}
