package cli

import "github.com/spf13/cobra"

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
