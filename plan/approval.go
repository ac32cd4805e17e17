package plan

// An Approval makes a task wait for a person. When the parents of the task are done, a node asks the
// question: the task is then held, with ReasonApproval, and holds no thread. A person's answer ends it.
type Approval struct {
	Question string `json:"question"` // for people, at most MaxSubject bytes
	// NotSubmitter excludes who submitted the plan.
	NotSubmitter bool `json:"not_submitter,omitempty"`
}

// ApprovalPlugin is the plugin, and the queue, of tasks with an Approval.
const ApprovalPlugin = "approval"

// AwaitsAnswer reports whether the task was asked, and waits for a person's answer.
func (t *Task) AwaitsAnswer() bool { return t.Status == Held && t.Reason == ReasonApproval }
