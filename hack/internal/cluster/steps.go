package cluster

import (
	"errors"
	"fmt"

	"podenv.dev/hack/internal/progress"
)

// steps shows the phases of one operation on a node, each as a step with its time.
type steps struct {
	reporter *progress.Reporter
	prefix   string
	step     *progress.Step
	failed   bool
}

// phase ends the step that runs and begins another. An err is of the one that ends.
func (s *steps) phase(err error, format string, args ...any) {
	s.step.End(err) //nolint:errcheck // the operation's error has it
	s.failed = s.failed || err != nil
	s.step = s.reporter.Step(s.prefix + fmt.Sprintf(format, args...))
}

// end ends the last step of an operation that ends with err. After a step that failed,
// the last one put back what there was before.
func (s *steps) end(err error) error {
	if s.failed && !errors.Is(err, errNotBack) {
		s.step.End(nil) //nolint:errcheck // see above
		return err
	}
	return s.step.End(err)
}
