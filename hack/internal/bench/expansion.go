package bench

import (
	"context"
	"fmt"
	"strings"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

const expansion = "expansion"

var expansionDuel = duel{
	mine: expansion, bench: "^Benchmark(Expand|Keep)$", time: "50ms", module: "k8s.io/kubernetes",
	asks: expansionRelations,
}

// keepAsks are of inputs without references.
var keepAsks = []ask{
	timesFaster("Keep/a_flag", expansion, upstream, 2),
	timesFaster("Keep/a_line_of_80_bytes", expansion, upstream, 2),
	timesFaster("Keep/a_script_of_64_KiB", expansion, upstream, 2),
	timesFaster("Keep/variables_of_a_shell", expansion, upstream, 2),
}

// Expansion runs the benchmarks of Expand count times: ours beside upstream's, on the
// cases of upstream's tests, and on text without references.
func Expansion(ctx context.Context, l layout.Layout, count int, step *progress.Step) (*Report, error) {
	return expansionDuel.run(ctx, "expansion", l, count, step)
}

// expansionRelations asks that the worst of upstream's cases is as fast as upstream's.
func expansionRelations(m *Measurements) ([]Relation, error) {
	worst, err := worstCase(m)
	if err != nil {
		return nil, err
	}
	keep, err := relations(m, keepAsks)
	return append([]Relation{worst}, keep...), err
}

func worstCase(m *Measurements) (Relation, error) {
	var worst Relation
	cases := 0
	for _, of := range casesOf(expansion, m) {
		if !strings.HasPrefix(of, "Expand/") {
			continue
		}
		cases++
		reached, err := relations(m, []ask{timesFaster(of, expansion, upstream, 1)})
		if err != nil {
			return worst, err
		}
		if cases == 1 || reached[0].Reached < worst.Reached {
			worst = reached[0]
		}
	}
	if cases == 0 {
		return worst, fmt.Errorf("no benchmark of upstream's cases ran")
	}
	worst.What = fmt.Sprintf("%s, the worst of %d", worst.What, cases)
	return worst, nil
}
