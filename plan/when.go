package plan

// When is a named rule: whether a task runs, given how its parents ended. The zero value is [AllSucceeded].
type When string

const (
	AllSucceeded           When = "all_succeeded"             // the default
	AllDone                When = "all_done"                  // however they ended
	AllFailed              When = "all_failed"                //
	AllSkipped             When = "all_skipped"               //
	AnyFailed              When = "any_failed"                // at least one, once all have finished
	AnySucceeded           When = "any_succeeded"             //
	AnySkipped             When = "any_skipped"               //
	NoneFailed             When = "none_failed"               // all succeeded or were skipped
	NoneSkipped            When = "none_skipped"              // all succeeded or failed
	NoneFailedAnySucceeded When = "none_failed_any_succeeded" // all succeeded or were skipped, and one did succeed
)
