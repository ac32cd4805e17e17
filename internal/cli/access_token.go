package cli

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/hint"
)

func tokenAdd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add ID",
		Short: "Make a token, and print it once",
		Long: "Make a token, and print it once: the file keeps only a hash of it. The audit log " +
			"has its id. A missing file is made, for its owner alone.",
		Example: "  sluice access token add ci --scope read,submit --expires 180d \\\n    --note 'pipeline of the shop' --access /etc/sluice/access.json",
	}
	file := accessFlag(cmd)
	var scopes auth.Scopes
	expires := 90 * 24 * time.Hour // 0: never
	cmd.Flags().Var(&value[auth.Scopes]{&scopes, "SCOPES", auth.ParseScopes, auth.Scopes.String}, "scope", "its scopes, separated by commas: read, operate, approve, submit, admin")
	cmd.Flags().Var(&value[time.Duration]{&expires, "AGE", parseExpiry, expiryText}, "expires", "when it expires, such as 180d, or never")
	note := cmd.Flags().String("note", "", "a `TEXT` on its purpose")
	completeWords(cmd, "scope", []string{"read", "operate", "approve", "submit", "admin", "read,submit", "read,operate,submit"})
	completeWords(cmd, "expires", []string{"30d", "90d", "365d", "never"})
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if scopes == nil {
			return usagef("--scope: say what it may do, as in --scope read,submit")
		}
		if err := auth.CheckName(args[0]); err != nil {
			return asUsage(err)
		}
		token, hash := auth.NewToken()
		now := time.Now().UTC().Truncate(time.Second)
		t := auth.Token{ID: args[0], SHA256: hash, Scopes: scopes, Created: now, Note: *note}
		if expires != 0 {
			t.Expires = now.Add(expires)
		}
		err := editAccess(*file, true, func(all *auth.Access) error {
			if slices.ContainsFunc(all.Tokens, func(t auth.Token) bool { return t.ID == args[0] }) {
				return usagef("token %s exists already; revoke it first, or choose another id", args[0])
			}
			all.Tokens = append(all.Tokens, t)
			return nil
		})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(a.Stdout, token); err != nil {
			return err
		}
		until := "for ever, until it is revoked"
		if expires != 0 {
			until = "until " + t.Expires.Local().Format(time.DateTime)
		}
		a.note("token %s may %s, %s; it is not shown again", t.ID, t.Scopes, until)
		if !t.Scopes.Has(auth.Read) {
			a.note("the token may read nothing, not even its own plans; for that it needs the scope read too")
		}
		return nil
	}
	return cmd
}

func tokenRevoke(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "revoke ID", Short: "Revoke a token"}
	file := accessFlag(cmd)
	completeArgument(cmd, file, tokenIDs)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return a.removeAccess(*file, "token "+args[0]+" revoked", func(all *auth.Access) error {
			is := func(t auth.Token) bool { return t.ID == args[0] }
			if !slices.ContainsFunc(all.Tokens, is) {
				return usagef("token %q is not in the file%s", args[0], hint.Meant(args[0], tokenIDs(all)))
			}
			all.Tokens = slices.DeleteFunc(all.Tokens, is)
			return nil
		})
	}
	return cmd
}

func tokenList(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the tokens, in the order of the file"}
	file, output := accessFlag(cmd), outputFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		all, err := loadAccess(*file)
		if err != nil {
			return err
		}
		now := time.Now()
		entries := make([]tokenEntry, len(all.Tokens))
		for i, t := range all.Tokens {
			entries[i] = tokenEntry{t.ID, "valid", t.Scopes, t.Created.UTC(), t.Expires.UTC(), t.Note}
			if !t.Valid(now) {
				entries[i].State = "expired"
			}
		}
		if output.json() {
			return view.JSON(a.Stdout, entries)
		}
		t := view.Table{Head: []string{"TOKEN", "STATE", "MAY", "ENDS", "NOTE"}}
		for _, e := range entries {
			ends := "never"
			if !e.Expires.IsZero() {
				if ends = "in " + duration.Text(e.Expires.Sub(now).Truncate(time.Second)); e.State == "expired" {
					ends = duration.Text(now.Sub(e.Expires).Truncate(time.Second)) + " ago"
				}
			}
			t.Add(e.ID, e.State, e.Scopes.String(), ends, e.Note)
		}
		return t.Print(a.Stdout)
	}
	return cmd
}

// A tokenEntry is a token in JSON listings.
type tokenEntry struct {
	ID      string      `json:"id"`
	State   string      `json:"state"` // valid, expired
	Scopes  auth.Scopes `json:"scopes"`
	Created time.Time   `json:"created,omitzero"`
	Expires time.Time   `json:"expires,omitzero"`
	Note    string      `json:"note,omitempty"`
}

// parseExpiry reads an age, or never, which is 0.
func parseExpiry(word string) (time.Duration, error) {
	if word == "never" {
		return 0, nil
	}
	age, err := parseAge(word)
	if err != nil || age == 0 {
		return 0, errors.New("it is an age, as in 30d, 2w or 12h, or never")
	}
	return age, nil
}

func expiryText(age time.Duration) string {
	if age == 0 {
		return "never"
	}
	return ageText(age)
}
