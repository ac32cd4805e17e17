package mongodb

import (
	"os"
	"strings"
	"testing"
)

func TestTheDocumentListsTheRoles(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/users.md")
	noError(t)(err)
	for _, r := range Roles() {
		table := "| collection | Sluice | Disbatch's programs beside | why |\n|---|---|---|---|\n"
		for _, p := range r.Privileges {
			table += "| `" + p.Collection + "` | " + strings.Join(p.Actions, ", ") + " | " + strings.Join(p.Disbatch, ", ") + " | " + p.Why + " |\n"
		}
		if !strings.Contains(string(doc), "### "+r.Name+"\n") || !strings.Contains(string(doc), table) {
			t.Errorf("docs/users.md does not have this table under the heading ### %s:\n%s", r.Name, table)
		}
	}
}
