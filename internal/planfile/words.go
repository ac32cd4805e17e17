package planfile

import (
	"fmt"

	"github.com/seed-1177d267/sluice/plan"
)

const (
	cronWord    = "what starts a plan by itself is a schedule; write schedule: {cron: LINE}, and apply it with sluice schedule apply FILE"
	notifyWord  = "what tells people is a task; make one with needs: [TASK], when: any_failed (or all_done), and a run: that sends the message"
	choicesWord = "the values that a param may have stand at choices:, as in choices: {site: [test, prod]}"
	finallyWord = "tasks that run when all others have ended stand at finally:, as in finally: {undo: {when: any_failed, run: COMMAND}}"
	atOnceWord  = "how many items or tasks run at once is a queue's limit; write queue: NAME, and queues: {NAME: {threads: N}} in the plan"
	aboutWord   = "texts about params stand at about:, as in about: {site: Where to}"
)

// Words of GitHub Actions, GitLab CI, Airflow, Argo, Dagu, make and others, with the word of a plan
// file for each. Words that may come later are refused like the others: a plan with an ignored word
// would do something else.
var (
	planHints = map[string]string{
		"name": "the name of the plan stands at plan:", "workflow": "the name of the plan stands at plan:",
		"dag": "the name of the plan stands at plan:", "id": "the name of the plan stands at plan:",
		"jobs": "its tasks stand at tasks:, by name", "steps": "its tasks stand at tasks:, by name, and their order is by needs",
		"stages": "tasks are in order by their needs", "nodes": "its tasks stand at tasks:, by name",
		"targets": "its tasks stand at tasks:, by name", "rules": "its tasks stand at tasks:, by name",
		"on": cronWord, "cron": cronWord, "notify": notifyWord, "notifications": notifyWord,
		"matrix": "give a task foreach: {matrix: {FIELD: [VALUE, VALUE]}}", "strategy": "give a task foreach: {matrix: {FIELD: [VALUE, VALUE]}}",
		"inputs": "values stand at params:, what they may be at choices:, and texts for people at about:", "vars": "values stand at params:, variables of all commands at env:",
		"variables": "values stand at params:, variables of all commands at env:", "parameters": "values stand at params:",
		"args": "values stand at params:", "environment": "variables of all commands stand at env:",
		"options": choicesWord, "option": choicesWord, "enum": choicesWord, "enums": choicesWord, "allowed": choicesWord,
		"descriptions": aboutWord, "help": aboutWord, "prompts": aboutWord,
		"default":      "keys for all tasks stand at defaults:",
		"concurrency":  "what may run at once is a queue's limit; write queues: {NAME: {threads: N}}, and queue: NAME in its tasks",
		"max-parallel": "what may run at once is a queue's limit; write queues: {NAME: {threads: N}}, and queue: NAME in its tasks",
		"parallelism":  "what may run at once is a queue's limit; write queues: {NAME: {threads: N}}, and queue: NAME in its tasks",
		"singleton":    "write overlap: skip", "max_active_runs": "write overlap: skip", "exclusive": "write overlap: skip",
		"services":  "containers are not built in; start what tasks need in a task's run:",
		"container": "containers are not built in; run: docker run … does it",
		"image":     "containers are not built in; run: docker run … does it",
		"version":   "a plan file has no version", "permissions": "a plan has no permissions of its own",
		"max_failures": "which failures count is said of a task with items; write max_failures at the task",
		"include":      "one file holds a plan; anchors and defaults: spare repeating",
		"extends":      "one file holds a plan; anchors and defaults: spare repeating",
		"on_success":   "write finally: {NAME: {when: all_succeeded, run: COMMAND}}",
		"always":       finallyWord, "post": finallyWord, "handlers": finallyWord, "triggers": finallyWord, "after": finallyWord, "cleanup": finallyWord,
		"fail-fast": "write on_failure: stop", "fail_fast": "write on_failure: stop",
		"timeout-minutes": "write timeout: 8h", "timeout_minutes": "write timeout: 8h", "deadline": "write timeout: 8h", "max_duration": "write timeout: 8h",
		"ttl": "how long a finished plan is kept stands at keep:", "retention": "how long a finished plan is kept stands at keep:",
		"working-directory": "write dir:", "workdir": "write dir:", "cwd": "write dir:",
		"description": "a plan has none; write it as a comment, after #",
		"desc":        "a plan has none; write it as a comment, after #", "title": "a plan has none; write it as a comment, after #",
	}
	taskHints = map[string]string{
		"name": "its name is the key that it stands at", "id": "its name is the key that it stands at",
		"unless":  "write if: with the condition under which it runs, as in if: needs.check.changed > 0",
		"only_if": "write if:, as in if: needs.check.changed > 0", "preconditions": "write if:, as in if: needs.check.changed > 0",
		"gate": `write approve: "QUESTION"; what needs the task waits for the answer`, "manual": `write approve: "QUESTION"; what needs the task waits for the answer`,
		"input": `write approve: "QUESTION"; what needs the task waits for the answer`, "approval": `write approve: "QUESTION"; what needs the task waits for the answer`,
		"on":     "needs: and when: say after what a task runs; what starts a plan by itself is a schedule, with schedule: {cron: LINE} beside tasks:",
		"cron":   "a schedule starts a whole plan; write schedule: {cron: LINE} beside tasks:, and apply it with sluice schedule apply FILE",
		"notify": notifyWord, "notifications": notifyWord,
		"depends":  "write needs:",
		"requires": "write needs:", "dependencies": "write needs:", "after": "write needs:", "deps": "write needs:",
		"parents": "write needs:", "upstream": "write needs:", "children": "the child says what it needs",
		"depends_on": "write needs:", "dependsOn": "write needs:",
		"uses": "there are no actions; say what to do with run:, or name a plugin with plugin: and params:",
		"with": "a plugin's values stand at params:", "inputs": "a plugin's values stand at params:",
		"steps":    "a task is one step; make a task of each, with needs, or with each: TASK for a step of each item, or one run: of several lines",
		"group":    "for a step of each item of a task write each: TASK",
		"script":   "write run:",
		"commands": "write run:", "command": "write run:", "cmd": "write run:", "cmds": "write run:", "exec": "write run:",
		"args":     "arguments stand in run:, as in run: [command, argument]",
		"matrix":   "write foreach: {matrix: {FIELD: [VALUE, VALUE]}}",
		"strategy": "write foreach: {matrix: {FIELD: [VALUE, VALUE]}}",
		"loop":     "write foreach:", "with_items": "write foreach:", "for": "write foreach:", "parallel": "write foreach: for items; " + atOnceWord,
		"for_each":          "write foreach:",
		"working-directory": "write dir:", "workdir": "write dir:", "cwd": "write dir:", "working_dir": "write dir:",
		"environment": "write env:", "variables": "write env:", "vars": "write env:",
		"secrets":         "a command gets a secret by env: {NAME: {from_env: NAME}} or {from_file: PATH}; names of params that are never shown stand beside tasks:",
		"retries":         "write retry: {attempts: N}, which counts the first attempt too",
		"max_attempts":    "write retry: {attempts: N}",
		"timeout-minutes": "write timeout: 30m", "timeout_minutes": "write timeout: 30m", "deadline": "write timeout: 30m",
		"runs-on": "nodes claim tasks by queue; write queue: NAME", "tags": "nodes claim tasks by queue; write queue: NAME",
		"pool": "write queue: NAME", "executor": "write plugin: NAME, and params:", "type": "write plugin: NAME, and params:",
		"allow_failure": "write continue-on-error: true", "ignore_errors": "write continue-on-error: true",
		"trigger_rule": "write when:", "trigger": "write when:", "rules": "write when:",
		"on_failure":  "write continue-on-error: true here, or on_failure: stop for the plan",
		"outputs":     "its output is the JSON that the command writes to \"$SLUICE_OUTPUT\"",
		"output":      "its output is the JSON that the command writes to \"$SLUICE_OUTPUT\"",
		"concurrency": atOnceWord, "max-parallel": atOnceWord, "max_parallel": atOnceWord, "threads": atOnceWord, "parallelism": atOnceWord, "max_concurrency": atOnceWord,
		"priority": "a plan has a priority, and of its tasks what has the longest way to the end goes first; write estimate: 10m",
		"duration": "write estimate: 10m", "container": "containers are not built in; run: docker run … does it",
		"image": "containers are not built in; run: docker run … does it", "services": "start what it needs in a task of its own",
		"cache": "outputs are not cached yet", "artifacts": "files stay where the command puts them",
		"tasks": "a plan inside a plan is not built yet", "jobs": "a plan inside a plan is not built yet",
		"stage": "tasks are in order by their needs",
	}
	retryHints = map[string]string{
		"max_attempts": "write attempts:", "limit": "write attempts:", "retries": "write attempts:", "count": "write attempts:",
		"times": "write attempts:", "interval": "write delay:", "interval_sec": "write delay: 5s", "backoff": "write factor:",
		"exponential": "write factor:", "multiplier": "write factor:", "max_delay": "write max:", "when": "write on: [75, timeout] or not_on: [2]", "if": "write on: [75, timeout] or not_on: [2]",
		"exit_codes": "write on: [75]", "exit_code": "write on: [75]", "on_exit_codes": "write on: [75]", "except": "write not_on: [2]",
	}
	limitHints = map[string]string{
		"limit": "write threads:", "max": "write threads:", "concurrency": "write threads:", "max-parallel": "write threads:",
		"parallelism": "write threads:", "workers": "write threads:", "size": "write threads:", "slots": "write threads:",
		"sort": "a queue's order is set by sluice queue set NAME --sort fifo",
	}
	whenHints = map[string]plan.When{
		"always": plan.AllDone, "always()": plan.AllDone, "success": plan.AllSucceeded, "success()": plan.AllSucceeded,
		"on_success": plan.AllSucceeded, "all_success": plan.AllSucceeded, "failure": plan.AnyFailed, "failure()": plan.AnyFailed,
		"on_failure": plan.AnyFailed, "one_failed": plan.AnyFailed, "one_success": plan.AnySucceeded,
		"none_failed_min_one_success": plan.NoneFailedAnySucceeded,
	}
)

// elsewhere says where a word belongs that is a key of the file, but not of this mapping.
func (r *reader) elsewhere(what, word string) (string, bool) {
	_, ofPlan := r.planKeys.index[word]
	_, ofTask := r.taskKeys.index[word]
	switch {
	case what == aPlan && ofTask:
		return fmt.Sprintf("it is one of a task; give it to all tasks with defaults: {%s: …}", word), true
	case what == aTask && ofPlan:
		return "it is one of the plan, and stands beside tasks:", true
	}
	return "", false
}
