package taskrun

import (
	"fmt"
	"slices"

	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	podconvert "github.com/tektoncd/pipeline/pkg/pod"
)

// envFileWait says which step waits for an env file and why, or is empty. The pod may have been
// stopped between seen, the steps of the TaskRun, and now, the steps of its pod: then a step that
// did not start still counts as it was seen.
func envFileWait(seen, now []v1.StepState) string {
	for _, step := range slices.Concat(now, seen) {
		started := slices.ContainsFunc(now, func(s v1.StepState) bool {
			return s.Name == step.Name && (s.Running != nil || s.Terminated != nil && !s.Terminated.StartedAt.IsZero())
		})
		if step.Waiting != nil && !started && podconvert.IsWaitingForEnvFile(*step.Waiting) {
			return fmt.Sprintf(": step %q waited for an env file: %s", step.Name, step.Waiting.Message)
		}
	}
	return ""
}
