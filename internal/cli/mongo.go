package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/config"
	"github.com/seed-1177d267/sluice/internal/store/mongodb"
	"github.com/seed-1177d267/sluice/internal/textfile"
)

// rootPasswordVariable is the environment variable that holds the administrator's password where no file does.
const rootPasswordVariable = "SLUICE_ROOT_PASSWORD"

func mongoCreateUsers(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create-users",
		Short: "Make the users of a configuration file on its MongoDB server, each with as few rights as it needs",
		Long: "Make the users disbatchd, disbatch_web, task_runner, plugin and queuebalance on " +
			"the MongoDB server of a configuration file, with the passwords of its auth. Each " +
			"gets a role of the same name with only the rights that its process needs " +
			"(docs/users.md lists them). Existing users and roles are changed, so you may run " +
			"the command again, for example after an upgrade.\n" +
			"\n" +
			"An administrator makes them. The administrator's password comes from " +
			"--root-password-file or from " + rootPasswordVariable + ". Without --root-user nobody\n" +
			"logs in, as on a server that lets anyone do everything until its access control is switched on.\n\n" +
			"What plugins may do that connect as plugin by themselves is in a file as {\"reports\": [\"insert\"]}: collections with lists of MongoDB's\n" +
			"actions. Without one that user may do nothing.",
		Example: "  sluice mongo create-users --dry-run\n" +
			"  sluice mongo create-users --config ./config.json --root-user root \\\n    --root-password-file ~/mongo-root\n" +
			"  sluice mongo create-users --root-user root " +
			"\\\n    --plugin-permissions ./plugin-permissions.json",
	}
	f := cmd.Flags()
	file := f.String("config", config.DefaultFile, "Disbatch's configuration `FILE`: server, database and passwords")
	root := f.String("root-user", "", "the `NAME` of the administrator")
	passwordFile := f.String("root-password-file", "", "the `FILE` with the administrator's password, in one line")
	rootDatabase := f.String("root-database", "admin", "the `DATABASE` that knows the administrator")
	permissions := f.String("plugin-permissions", "", "the `FILE` of what the user plugin may do (default: "+config.DefaultPermissions+", if it is there)")
	drop := f.Bool("drop-existing", false, "drop existing users and roles of these names, and make them again; connections of "+
		"these users are refused meanwhile")
	dry := f.Bool("dry-run", false, "print the commands, one line of JSON each, and connect to nothing")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if a.server.flag != "" {
			return usagef("--server: the server and the database are those of --config")
		}
		if a.storeFlag != "" {
			return usagef("--store: the server and the database are those of --config")
		}
		conf, err := config.Read(*file)
		if err != nil {
			return asUsage(err)
		}
		a.told("warning", conf.Warnings)
		users, err := a.usersOf(conf, *permissions)
		if err != nil {
			return err
		}
		if users.Drop = *drop; *dry {
			for _, c := range users.Commands() {
				if _, err := fmt.Fprintln(a.Stdout, c); err != nil {
					return err
				}
			}
			a.note("nothing was sent; roles and users that are there would be changed to this by updateRole and updateUser, or dropped first with --drop-existing")
			return nil
		}
		password, err := a.rootPassword(*root, *passwordFile)
		if err != nil {
			return err
		}
		uri := conf.AdminURI(*root, password, *rootDatabase)
		err = users.Make(cmd.Context(), uri, func(what string) { fmt.Fprintln(a.Stdout, what) })
		if err != nil {
			return fmt.Errorf("make the users on %s: %w", a.Redact(uri), err)
		}
		return nil
	}
	return cmd
}

// usersOf returns the users that a configuration file names, with their roles. It leaves out users
// without a password.
func (a *app) usersOf(conf *config.Config, permissions string) (*mongodb.Users, error) {
	in, err := conf.UsersIn()
	if err != nil {
		return nil, asUsage(err)
	}
	if len(conf.Auth) == 0 {
		return nil, usagef(`%s has no auth, and so no passwords; add "auth": {"disbatchd": "…", "disbatch_web": "…", "task_runner": "…", "plugin": "…"}`, conf.Name)
	}
	plugin, err := a.pluginRole(permissions)
	if err != nil {
		return nil, err
	}
	users := &mongodb.Users{Database: conf.Database, In: in, Passwords: map[string]string{}}
	for _, r := range append(mongodb.Roles(), plugin) {
		password, given := conf.Auth[config.User(r.Name)]
		if !given {
			a.note("auth of %s has no %s: it gets no role and no user", conf.Name, r.Name)
			continue
		}
		if password == "" {
			return nil, usagef("%s: auth.%s is empty; MongoDB needs a password, so write one", conf.Name, r.Name)
		}
		users.Roles = append(users.Roles, r)
		users.Passwords[r.Name] = password
	}
	return users, nil
}

// pluginRole returns the role of what connects as plugin: a site says what that may do.
func (a *app) pluginRole(path string) (mongodb.Role, error) {
	role := mongodb.Role{Name: string(config.Plugin)}
	named := path != ""
	if !named {
		path = config.DefaultPermissions
	}
	all, warnings, err := config.ReadPermissions(path)
	if !named && errors.Is(err, fs.ErrNotExist) {
		a.note("there is no %s, and --plugin-permissions names no other file: the user plugin may do nothing", path)
		return role, nil
	}
	if err != nil {
		return role, asUsage(err)
	}
	a.told("warning", warnings)
	role.Privileges = api.Each(all, func(p *config.Permission) mongodb.Privilege {
		return mongodb.Privilege{Collection: p.Collection, Actions: p.Actions}
	})
	return role, nil
}

// rootPassword returns the administrator's password. It is not taken from the command line, which other users of a machine can see.
func (a *app) rootPassword(user, path string) (string, error) {
	switch {
	case user == "" && path != "":
		return "", usagef("--root-password-file needs the user of that password; give --root-user too")
	case user == "":
		return "", nil
	case path != "":
		text, err := os.ReadFile(path)
		if err != nil {
			return "", usagef("--root-password-file: %w", err)
		}
		password := strings.TrimRight(string(textfile.WithoutMark(text)), "\r\n")
		if password == "" || strings.ContainsAny(password, "\r\n") {
			return "", usagef("--root-password-file %s: the file must have only the password, in one line", path)
		}
		return password, nil
	}
	password := a.Getenv(rootPasswordVariable)
	if password == "" {
		return "", usagef("the password of %s is not known; give --root-password-file, or set %s", user, rootPasswordVariable)
	}
	return password, nil
}
