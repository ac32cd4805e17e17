//go:build unix

package main_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A server runs no tasks: what its own process would lack is for nodes to have.
func TestAServerTakesAPlanWhoseSecretsNodesHave(t *testing.T) {
	s := newSite(t, "sqlite:"+filepath.Join(t.TempDir(), "sluice.db"))
	log, err := os.CreateTemp(s.dir, "dci-*.log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	server := s.runNode(s.command("dci", "--listen", "127.0.0.1:0"), log)
	s.says(server, "/ui/\n")
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(server.said())
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
