package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/duration"
)

func accessCommands(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "access",
		Short: "Say who may do what over HTTP",
		Long: "Look at and change an access file: the users and the tokens that a server of the REST API and the pages lets in, and what each may\n" +
			"do. docs/access.md explains it. A server that uses the file reads it again within a second.",
	}, accessUser(a), accessToken(a))
}

func accessUser(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "user",
		Short: "Users, who log in with a password",
		Long: "Users log in with a name and a password, on the pages or with each request (HTTP basic). What each may do is a role:\n\n" +
			"  viewer     look\n" +
			"  operator   look; cancel, retry, limit queues and nodes, balance\n" +
			"  editor     all that an operator may, and submit plans and tasks: run commands\n" +
			"  admin      all that an editor may, and delete and prune",
	}, userAdd(a), userSet(a), userPassword(a), userRemove(a), userList(a))
}

func accessToken(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "token",
		Short: "Tokens, which programs send",
		Long: "A token is what a program sends instead of a name and a password (Authorization: Bearer sluice_…). It may do what its scopes say, and\n" +
			"nothing else; none contains another:\n\n" +
			"  read      look\n" +
			"  operate   cancel, retry, limit queues and nodes, balance\n" +
			"  submit    submit plans and tasks: run commands\n" +
			"  admin     delete and prune",
	}, tokenAdd(a), tokenRevoke(a), tokenList(a))
}

// accessFlag gives a command its --access.
func accessFlag(cmd *cobra.Command) *string {
	file := cmd.Flags().String("access", "", "the access `FILE`")
	_ = cmd.MarkFlagFilename("access") // the flag is there
	return file
}

// A userEntry is a user in JSON listings.
type userEntry struct {
	Name   string      `json:"name"`
	Role   auth.Role   `json:"role"`
	Scopes auth.Scopes `json:"scopes"`
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

func userAdd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a user, whose password is asked for",
		Long: "Add a user, whose password is asked for on a terminal, and else is the first line of standard input. The file is made if it is not\n" +
			"there, for its owner alone.",
		Args:    exactly(1),
		Example: "  sluice access user add alice --role admin --access /etc/sluice/access.json",
	}
	file, role := accessFlag(cmd), roleFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := args[0]
		if role.value == "" {
			return usagef("--role: say what %s may do: %s", name, strings.Join(role.words, ", "))
		}
		if err := auth.CheckName(name); err != nil {
			return asUsage(err)
		}
		there, err := loadAccess(*file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if there != nil && findUser(there, name) != nil {
			return userExists(name)
		}
		password, err := a.askPassword(cmd.Context(), name)
		if err != nil {
			return err
		}
		u := auth.User{Name: name, Password: auth.HashPassword(password), Role: auth.Role(role.value)}
		err = editAccess(*file, true, func(all *auth.Access) error {
			if findUser(all, name) != nil { // since then
				return userExists(name)
			}
			all.Users = append(all.Users, u)
			return nil
		})
		if err != nil {
			return err
		}
		return a.say("user %s added; may %s", name, u.Role.Scopes())
	}
	return cmd
}

func userExists(name string) error {
	return usagef("user %s is there already; access user set changes the role, and access user password the password", name)
}

func userSet(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Change what a user may do", Args: exactly(1),
		Long:    "Change what a user may do, from the next request on, also in sessions that go on.",
		Example: "  sluice access user set alice --role operator --access /etc/sluice/access.json",
	}
	file, role := accessFlag(cmd), roleFlag(cmd)
	completeArgument(cmd, file, userNames)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if role.value == "" {
			return usagef("nothing to change: give --role")
		}
		err := editAccess(*file, false, func(all *auth.Access) error {
			u, err := userOf(all, args[0])
			if err == nil {
				u.Role = auth.Role(role.value)
			}
			return err
		})
		if err != nil {
			return err
		}
		return a.say("user %s may %s", args[0], auth.Role(role.value).Scopes())
	}
	return cmd
}

func userPassword(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "password NAME", Short: "Change a user's password", Args: exactly(1),
		Long:    "Change a user's password, which is asked for on a terminal, and else is the first line of standard input. The user's sessions end.",
		Example: "  sluice access user password alice --access /etc/sluice/access.json",
	}
	file := accessFlag(cmd)
	completeArgument(cmd, file, userNames)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		there, err := loadAccess(*file)
		if err == nil {
			_, err = userOf(there, args[0])
		}
		if err != nil {
			return err
		}
		password, err := a.askPassword(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		hash := auth.HashPassword(password)
		err = editAccess(*file, false, func(all *auth.Access) error {
			u, err := userOf(all, args[0])
			if err == nil {
				u.Password = hash
			}
			return err
		})
		if err != nil {
			return err
		}
		return a.say("user %s has a new password; sessions of the old one end", args[0])
	}
	return cmd
}

func userRemove(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "remove NAME", Short: "Remove a user, whose sessions end", Args: exactly(1)}
	file := accessFlag(cmd)
	completeArgument(cmd, file, userNames)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return a.removeAccess(*file, "user "+args[0]+" removed", func(all *auth.Access) error {
			_, err := userOf(all, args[0])
			all.Users = slices.DeleteFunc(all.Users, func(u auth.User) bool { return u.Name == args[0] })
			return err
		})
	}
	return cmd
}

func userList(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the users, in the order of the file", Args: exactly(0)}
	file, output := accessFlag(cmd), outputFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		all, err := loadAccess(*file)
		if err != nil {
			return err
		}
		entries := make([]userEntry, len(all.Users))
		for i, u := range all.Users {
			entries[i] = userEntry{u.Name, u.Role, u.Role.Scopes()}
		}
		if output.json() {
			return view.JSON(a.Stdout, entries)
		}
		t := view.Table{Head: []string{"USER", "ROLE", "MAY"}}
		for _, e := range entries {
			t.Add(e.Name, string(e.Role), e.Scopes.String())
		}
		return t.Print(a.Stdout)
	}
	return cmd
}

func tokenAdd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add ID",
		Short: "Make a token, and print it once",
		Long: "Make a token, and print it: the file keeps what it can be checked by, and nobody can print it again. The id is who it is in the audit\n" +
			"log. The file is made if it is not there, for its owner alone.",
		Args:    exactly(1),
		Example: "  sluice access token add ci --scope read,submit --expires 180d \\\n    --note 'pipeline of the shop' --access /etc/sluice/access.json",
	}
	file := accessFlag(cmd)
	var scopes scopesValue
	expires := expiryValue(90 * 24 * time.Hour)
	cmd.Flags().Var(&scopes, "scope", "what it may do, with commas between: read, operate, submit, admin")
	cmd.Flags().Var(&expires, "expires", "when it ends, as in 180d, or never")
	note := cmd.Flags().String("note", "", "a `TEXT` of what it is for")
	completeWords(cmd, "scope", []string{"read", "operate", "submit", "admin", "read,submit", "read,operate,submit"})
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
		t := auth.Token{ID: args[0], SHA256: hash, Scopes: auth.Scopes(scopes), Created: now, Note: *note}
		if expires != 0 {
			t.Expires = now.Add(time.Duration(expires))
		}
		err := editAccess(*file, true, func(all *auth.Access) error {
			if slices.ContainsFunc(all.Tokens, func(t auth.Token) bool { return t.ID == args[0] }) {
				return usagef("token %s is there already; revoke it first, or choose another id", args[0])
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
			a.note("it may look at nothing, not even at what it does itself; for that it needs the scope read too")
		}
		return nil
	}
	return cmd
}

func tokenRevoke(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "revoke ID", Short: "Take a token back", Args: exactly(1)}
	file := accessFlag(cmd)
	completeArgument(cmd, file, tokenIDs)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return a.removeAccess(*file, "token "+args[0]+" revoked", func(all *auth.Access) error {
			is := func(t auth.Token) bool { return t.ID == args[0] }
			if !slices.ContainsFunc(all.Tokens, is) {
				return usagef("token %q is not in the file%s", args[0], didYouMean(args[0], tokenIDs(all)))
			}
			all.Tokens = slices.DeleteFunc(all.Tokens, is)
			return nil
		})
	}
	return cmd
}

func tokenList(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the tokens, in the order of the file", Args: exactly(0)}
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

// say prints what was done.
func (a *app) say(format string, args ...any) error {
	_, err := fmt.Fprintf(a.Stdout, format+"\n", args...)
	return err
}

// removeAccess takes something out of an access file, and says so.
func (a *app) removeAccess(file, done string, change func(*auth.Access) error) error {
	empty := false
	err := editAccess(file, false, func(all *auth.Access) error {
		err := change(all)
		empty = all.Empty()
		return err
	})
	if err != nil {
		return err
	}
	if empty {
		a.note("%s lets nobody in any more, and no server starts with it", file)
	}
	return a.say("%s", done)
}

func loadAccess(file string) (*auth.Access, error) {
	if file == "" {
		return nil, errNoAccessFile()
	}
	all, err := auth.Load(file)
	return all, accessError(err)
}

func editAccess(file string, create bool, change func(*auth.Access) error) error {
	if file == "" {
		return errNoAccessFile()
	}
	return accessError(auth.Edit(file, create, change))
}

func errNoAccessFile() error {
	return usagef("--access: say which file it is that says who may do what")
}

// accessError marks what is wrong with an access file as to be put right there; but not that the system could not read or write it.
func accessError(err error) error {
	var system *fs.PathError
	if err == nil || errors.As(err, &system) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return asUsage(err)
}

func findUser(all *auth.Access, name string) *auth.User {
	i := slices.IndexFunc(all.Users, func(u auth.User) bool { return u.Name == name })
	if i < 0 {
		return nil
	}
	return &all.Users[i]
}

// userOf is findUser where it has to be there.
func userOf(all *auth.Access, name string) (*auth.User, error) {
	if u := findUser(all, name); u != nil {
		return u, nil
	}
	return nil, usagef("user %q is not in the file%s", name, didYouMean(name, userNames(all)))
}

func userNames(all *auth.Access) (names []string) {
	for _, u := range all.Users {
		names = append(names, u.Name)
	}
	return names
}

func tokenIDs(all *auth.Access) (ids []string) {
	for _, t := range all.Tokens {
		ids = append(ids, t.ID)
	}
	return ids
}

// completeArgument offers what is in the access file as the command's argument.
func completeArgument(cmd *cobra.Command, file *string, names func(*auth.Access) []string) {
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		all, err := loadAccess(*file)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(all), cobra.ShellCompDirectiveNoFileComp
	}
}

// roleFlag gives a command its --role.
func roleFlag(cmd *cobra.Command) *choice {
	role := &choice{}
	for _, r := range auth.Roles() {
		role.words = append(role.words, string(r))
	}
	cmd.Flags().Var(role, "role", "what the user may do")
	return role
}

// A scopesValue is a flag's scopes.
type scopesValue auth.Scopes

func (v *scopesValue) Type() string   { return "SCOPES" }
func (v *scopesValue) String() string { return auth.Scopes(*v).String() }

// Set implements pflag.Value.
func (v *scopesValue) Set(words string) error {
	scopes, err := auth.ParseScopes(words)
	if err == nil {
		*v = scopesValue(scopes)
	}
	return err
}

// An expiryValue is a flag's age, or never, which is 0.
type expiryValue time.Duration

func (v *expiryValue) Type() string { return "AGE" }

func (v *expiryValue) String() string {
	if *v == 0 {
		return "never"
	}
	if day := 24 * time.Hour; time.Duration(*v)%day == 0 {
		return fmt.Sprintf("%dd", time.Duration(*v)/day)
	}
	return time.Duration(*v).String()
}

// Set implements pflag.Value.
func (v *expiryValue) Set(word string) error {
	if word == "never" {
		*v = 0
		return nil
	}
	var age ageValue
	if err := age.Set(word); err != nil || age == 0 {
		return errors.New("it is an age, as in 30d, 2w or 12h, or never")
	}
	*v = expiryValue(age)
	return nil
}

// askPassword returns a new password: on a terminal it is asked for twice and not shown, else it is the first line of standard input. It is never
// an argument, which other users of a machine can see.
func (a *app) askPassword(ctx context.Context, user string) (string, error) {
	f, ok := a.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		line, err := bufio.NewReader(io.LimitReader(a.Stdin, 2*auth.MostPassword)).ReadString('\n')
		if err != nil && err != io.EOF {
			return "", err
		}
		password := strings.TrimRight(line, "\r\n")
		if password == "" {
			return "", usagef("there is no password on standard input; it is the first line there, or is asked for on a terminal")
		}
		return password, asUsage(auth.CheckPassword(password))
	}
	password, err := a.readHidden(ctx, f, fmt.Sprintf("password of %s: ", user))
	if err != nil {
		return "", err
	}
	if err := auth.CheckPassword(password); err != nil {
		return "", asUsage(err)
	}
	again, err := a.readHidden(ctx, f, "once more: ")
	if err == nil && again != password {
		err = usagef("the two are not the same; nothing was changed")
	}
	return password, err
}

// readHidden reads a line from a terminal that does not show it. Whatever ends it, the terminal shows again what is typed.
func (a *app) readHidden(ctx context.Context, f *os.File, prompt string) (string, error) {
	state, err := term.GetState(int(f.Fd()))
	if err != nil {
		return "", err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	quit := a.quit.heed()
	defer a.quit.leave()
	fmt.Fprint(a.Stderr, prompt)
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() { // which a signal leaves behind, as the process ends
		text, err := term.ReadPassword(int(f.Fd()))
		read <- line{text, err}
	}()
	select {
	case l := <-read:
		fmt.Fprintln(a.Stderr)
		if len(l.text) == 0 && (l.err == nil || l.err == io.EOF) {
			l.err = usagef("no password was given; nothing was changed")
		}
		return string(l.text), l.err
	case <-quit:
	case <-ctx.Done():
	}
	fmt.Fprintln(a.Stderr)
	return "", errors.Join(errInterrupted, term.Restore(int(f.Fd()), state))
}
