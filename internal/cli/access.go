package cli

import "github.com/spf13/cobra"

func accessCommands(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "access",
		Short: "Manage users and tokens for HTTP",
		Long: "Show and change an access file: the users and tokens of a server, with their " +
			"roles and scopes. docs/access.md explains it. A server reads its file again " +
			"within a second.",
	}, accessUser(a), accessToken(a))
}

func accessUser(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "user",
		Short: "Users, who log in with a password",
		Long: "Users log in with a name and a password, on the pages or with each request (HTTP " +
			"basic). Each has a role:\n" +
			"\n" +
			"  viewer     read everything\n" +
			"  operator   also cancel, retry, limit queues and nodes, balance\n" +
			"  editor     also submit plans and tasks: run commands\n" +
			"  admin      also delete and prune",
	}, userAdd(a), userSet(a), userPassword(a), userRemove(a), userList(a))
}

func accessToken(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "token",
		Short: "Tokens, which programs send",
		Long: "A program sends a token instead of a name and a password (Authorization: Bearer " +
			"sluice_…). The token has only its scopes, and no scope contains another:\n" +
			"\n" +
			"  read      read everything\n" +
			"  operate   cancel, retry, limit queues and nodes, balance\n" +
			"  submit    submit plans and tasks: run commands\n" +
			"  admin     delete and prune",
	}, tokenAdd(a), tokenRevoke(a), tokenList(a))
}
