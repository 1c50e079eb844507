package suite

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"podenv.dev/test/e2e/internal/nodes"
)

func TestOnlySpecsWithAContextAreLimited(t *testing.T) {
	defer func(before time.Duration) { nodes.Options.SpecTimeout = before }(nodes.Options.SpecTimeout)
	nodes.Options.SpecTimeout = time.Minute
	for name, test := range map[string]struct {
		node types.NodeType
		body any
		want bool
	}{
		"a spec":                   {types.NodeTypeIt, func(context.Context) {}, true},
		"an entry of a table":      {types.NodeTypeIt, func(ginkgo.SpecContext) {}, true},
		"a spec without a context": {types.NodeTypeIt, func() {}, false},
		"a container":              {types.NodeTypeContainer, func() {}, false},
		"what runs before a spec":  {types.NodeTypeBeforeEach, func(context.Context) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			text, args, errs := limitSpec(test.node, 0, "text", []any{ginkgo.Label("l"), nil, test.body})
			if text != "text" || len(errs) > 0 {
				t.Errorf("got %q, %v", text, errs)
			}
			if got := slices.ContainsFunc(args, func(arg any) bool { return arg == ginkgo.SpecTimeout(time.Minute) }); got != test.want {
				t.Errorf("limited: %t, want %t", got, test.want)
			}
		})
	}
}
