package cli

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/cli/view"
)

func userAdd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a user",
		Long: "Add a user. The command asks for the password on a terminal; otherwise the " +
			"password is the first line of standard input. A missing file is made, for its " +
			"owner alone.",
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
	return usagef("user %s exists already; change the role with access user set, and the password with "+
		"access user password", name)
}

func userSet(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Change the role of a user",
		Long:    "Change the role of a user, from the next request on, also in open sessions.",
		Example: "  sluice access user set alice --role operator --access /etc/sluice/access.json",
	}
	file, role := accessFlag(cmd), roleFlag(cmd)
	completeArgument(cmd, file, userNames)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if role.value == "" {
			return usagef("nothing to change: give --role")
		}
		if err := editUser(*file, args[0], func(u *auth.User) { u.Role = auth.Role(role.value) }); err != nil {
			return err
		}
		return a.say("user %s may %s", args[0], auth.Role(role.value).Scopes())
	}
	return cmd
}

func userPassword(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "password NAME", Short: "Change a user's password",
		Long: "Change a user's password. The command asks for it on a terminal; otherwise it is " +
			"the first line of standard input. The user's sessions end.",
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
		if err := editUser(*file, args[0], func(u *auth.User) { u.Password = hash }); err != nil {
			return err
		}
		return a.say("user %s has a new password; sessions of the old one end", args[0])
	}
	return cmd
}

func userRemove(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "remove NAME", Short: "Remove a user, and end the sessions of that user"}
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
	cmd := &cobra.Command{Use: "list", Short: "List the users, in the order of the file"}
	file, output := accessFlag(cmd), outputFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		all, err := loadAccess(*file)
		if err != nil {
			return err
		}
		entries := api.Each(all.Users, func(u *auth.User) userEntry { return userEntry{u.Name, u.Role, u.Role.Scopes()} })
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

// A userEntry is a user in JSON listings.
type userEntry struct {
	Name   string      `json:"name"`
	Role   auth.Role   `json:"role"`
	Scopes auth.Scopes `json:"scopes"`
}
