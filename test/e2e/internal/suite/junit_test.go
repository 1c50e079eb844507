package suite

import (
	"testing"

	"github.com/onsi/ginkgo/v2/types"
)

func TestIsTestCase(t *testing.T) {
	spec := func(node types.NodeType, state types.SpecState, message string) types.SpecReport {
		return types.SpecReport{LeafNodeType: node, State: state, Failure: types.Failure{Message: message}}
	}
	for name, test := range map[string]struct {
		spec types.SpecReport
		want bool
	}{
		"a spec that passed":                  {spec(types.NodeTypeIt, types.SpecStatePassed, ""), true},
		"a spec that failed":                  {spec(types.NodeTypeIt, types.SpecStateFailed, "no"), true},
		"a spec that says why it was skipped": {spec(types.NodeTypeIt, types.SpecStateSkipped, "no kubectl"), true},
		"a spec outside of the focus":         {spec(types.NodeTypeIt, types.SpecStateSkipped, ""), false},
		"a pending spec":                      {spec(types.NodeTypeIt, types.SpecStatePending, ""), true},
		"a set-up that passed":                {spec(types.NodeTypeSynchronizedBeforeSuite, types.SpecStatePassed, ""), false},
		"a set-up that failed":                {spec(types.NodeTypeSynchronizedBeforeSuite, types.SpecStateFailed, "no image"), true},
		"a set-up that failed in another process": {types.SpecReport{
			LeafNodeType: types.NodeTypeSynchronizedBeforeSuite, State: types.SpecStateFailed, ParallelProcess: 2}, false},
		"a report that panicked after the specs": {spec(types.NodeTypeReportAfterSuite, types.SpecStatePanicked, "bug"), true},
		"a spec that was interrupted":            {spec(types.NodeTypeIt, types.SpecStateInterrupted, "by user"), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isTestCase(test.spec); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
