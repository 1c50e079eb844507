package bench

import (
	"context"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

const envvarname = "envvarname"

var namesDuel = duel{
	mine: envvarname, bench: "^Benchmark(Strict|Relaxed)$", time: "200ms", module: "k8s.io/apimachinery",
	asks: func(m *Measurements) ([]Relation, error) { return relations(m, nameAsks) },
}

// nameAsks are of a regular expression for strict names; for relaxed ones upstream has
// none.
var nameAsks = []ask{
	timesFaster("Strict/4_bytes", envvarname, upstream, 20),
	timesFaster("Strict/15_bytes", envvarname, upstream, 20),
	timesFaster("Strict/32_bytes", envvarname, upstream, 20),
	timesFaster("Relaxed/4_bytes", envvarname, upstream, 1),
	timesFaster("Relaxed/15_bytes", envvarname, upstream, 1),
	timesFaster("Relaxed/32_bytes", envvarname, upstream, 1),
}

// Names runs the benchmarks of the validation of names of variables count times: our
// rules beside upstream's regular expression for strict names, and its
// IsRelaxedEnvVarName.
func Names(ctx context.Context, l layout.Layout, count int, step *progress.Step) (*Report, error) {
	return namesDuel.run(ctx, "names", l, count, step)
}
