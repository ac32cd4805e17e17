package cli

import "github.com/spf13/cobra"

// under makes a command that only holds others. Without a long text, its help is the short one.
func under(use, short, long string, children ...*cobra.Command) *cobra.Command {
	return group(&cobra.Command{Use: use, Short: short, Long: long}, children...)
}

func planCommands(a *app) *cobra.Command {
	cmd := under("plan", "Run plans, and manage them", "Run plans, and look after them.\n\n"+planHelp)
	titled(cmd, "run", "Run them:", planRun(a), planSubmit(a), planWait(a), planCheck(a))
	titled(cmd, "look", "Look at them:", planList(a), planStatus(a), planLogs(a), planFailures(a), planExplain(a), planGraph(a))
	titled(cmd, "act", "Act on them:", planRetry(a), planSet(a), planCancel(a), planDelete(a), planPrune(a))
	titled(cmd, "files", "Plan files:", planExample(a), planValidate(a), planSchema(a), planImport(a))
	titled(cmd, "build", "Plans made task by task, as by a script:", planCreate(a), planAdd(a), planReady(a))
	return cmd
}

// commandGroups returns the commands of the first level that only hold others, in the order of their use.
func commandGroups(a *app) []*cobra.Command {
	return []*cobra.Command{
		planCommands(a),
		under("task", "Show tasks, and act on them",
			"Look at tasks, and act on them.\n\n"+taskHelp,
			taskList(a), taskShow(a), taskLogs(a), taskAdd(a), taskSet(a), taskCancel(a), taskRetry(a), taskApprove(a), taskReject(a)),
		under("schedule", "Start plans and tasks at the instants of a timetable",
			"Make and change schedules. A schedule starts a plan or a task at each instant of a cron "+
				"line or an interval. Nodes start them: \"sluice worker\" is one. docs/schedules.md "+
				"explains timetables and schedules.",
			schedulePreview(a), scheduleCreate(a), scheduleList(a), scheduleShow(a), scheduleSet(a), schedulePause(a), scheduleResume(a), scheduleRun(a), scheduleBackfill(a), scheduleDelete(a), scheduleApply(a)),
		under("queue", "Make queues, and set their limits",
			"Make queues, and set their limits. In a queue wait tasks of one plugin, under one "+
				"limit over all nodes. A plan's task without a queue goes to the queue named as "+
				"its plugin; a missing one is made.",
			queueList(a), queueCreate(a), queueSet(a), queueDelete(a)),
		under("group", "Group queues, and limit groups",
			"Group queues, and limit groups. The queues of a group share its rate, and can be paused "+
				"together. A group may be in another group. docs/fair.md explains groups and rates.",
			groupList(a), groupCreate(a), groupSet(a), groupDelete(a)),
		under("oste", "Hand over finished activities of a solution",
			"Hand over finished activities. A solution is a group of queues, and its activities are their tasks of no plan.",
			osteRoll(a)),
		under("node", "Show and limit execution nodes",
			"Show and limit execution nodes, the processes that claim and run tasks.",
			nodeList(a), nodeSet(a)),
		under("balance", "Balance queues by day, time and priority",
			"Show, check and change the balance document, by which nodes set the threads of "+
				"queues: how many tasks these may run together, by day and time, and which come "+
				"first. It is Disbatch 4's; docs/balance.md explains it. A node balances if it is "+
				"started with --config and a file that has balance.enabled.",
			balanceShow(a), balanceCheck(a), balanceSet(a)),
		under("plugin", "Show plugins",
			"Show plugins. A plugin does the work of tasks. Some are built in, and each "+
				"program in a folder of --plugin-dir is one more. docs/plugins.md tells how to "+
				"write one.",
			pluginList(a)),
		under("disco", "Run and check workers of Disco, and submit its jobs",
			"Try workers of Disco: programs that speak the Disco worker protocol. Tasks of the "+
				"plugin disco run them. A job pack is a job of such tasks. docs/disco.md explains both.",
			discoRun(a), discoCheck(a), discoSubmit(a)),
		under("access", "Manage users and tokens for HTTP",
			"Show and change an access file: the users and tokens of a server, with their "+
				"roles and scopes. docs/access.md explains it. A server reads its file again "+
				"within a second.",
			under("user", "Users, who log in with a password",
				"Users log in with a name and a password, on the pages or with each request (HTTP "+
					"basic). Each has a role:\n"+
					"\n"+
					"  viewer     read everything\n"+
					"  operator   also cancel, retry, limit queues and nodes, balance\n"+
					"  editor     also submit plans and tasks: run commands\n"+
					"  admin      also delete and prune",
				userAdd(a), userSet(a), userPassword(a), userRemove(a), userList(a)),
			under("token", "Tokens, which programs send",
				"A program sends a token instead of a name and a password (Authorization: Bearer "+
					"sluice_…). The token has only its scopes, and no scope contains another:\n"+
					"\n"+
					"  read      read everything\n"+
					"  operate   cancel, retry, limit queues and nodes, balance\n"+
					"  submit    submit plans and tasks: run commands\n"+
					"  admin     delete and prune",
				tokenAdd(a), tokenRevoke(a), tokenList(a)),
		),
		under("store", "Check the store for damage",
			"Check the store for damage.",
			storeCheck(a)),
		under("mongo", "Prepare a MongoDB server",
			"",
			mongoCreateUsers(a)),
	}
}

func configCommands(a *app) *cobra.Command {
	return under("config", "Check a configuration file of Disbatch 4", "", configCheck(a))
}
