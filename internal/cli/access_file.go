package cli

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/hint"
)

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
		a.note("%s has no user and no token any more, and no server starts with it", file)
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

// editUser changes a user, who has to be in the file.
func editUser(file, name string, change func(*auth.User)) error {
	return editAccess(file, false, func(all *auth.Access) error {
		u, err := userOf(all, name)
		if err == nil {
			change(u)
		}
		return err
	})
}

func errNoAccessFile() error {
	return usagef("--access: name the access file")
}

// accessError marks a mistake in an access file as one to mend there. A failure of the system to
// read or write the file is no mistake in it.
func accessError(err error) error {
	if _, system := errors.AsType[*fs.PathError](err); err == nil || system && !errors.Is(err, fs.ErrNotExist) {
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
	return nil, usagef("user %q is not in the file%s", name, hint.Meant(name, userNames(all)))
}

func userNames(all *auth.Access) []string {
	return api.Each(all.Users, func(u *auth.User) string { return u.Name })
}

func tokenIDs(all *auth.Access) []string {
	return api.Each(all.Tokens, func(t *auth.Token) string { return t.ID })
}

// completeArgument offers what is in the access file as the command's argument.
func completeArgument(cmd *cobra.Command, file *string, names func(*auth.Access) []string) {
	cmd.ValidArgsFunction = onlyFirst(func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		all, err := loadAccess(*file)
		if err != nil {
			return offer(nil, nil)
		}
		return offer(names(all), nil)
	})
}

// accessFlag gives a command its --access.
func accessFlag(cmd *cobra.Command) *string {
	file := cmd.Flags().String("access", "", "the access `FILE`")
	_ = cmd.MarkFlagFilename("access") // the flag is there
	return file
}

// roleFlag gives a command its --role.
func roleFlag(cmd *cobra.Command) *choice {
	role := &choice{words: api.Each(auth.Roles(), func(r *auth.Role) string { return string(*r) })}
	cmd.Flags().Var(role, "role", "the role of the user")
	return role
}
