// Package compare compares the results of specs on a release without patches and on the same release with them.
package compare

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"podenv.dev/hack/internal/jsonout"
	"podenv.dev/hack/internal/junit"
)

// State is the result of a spec on one cluster.
type State string

// The states of a spec.
const (
	Passed  State = "passed"
	Failed  State = "failed"
	Skipped State = "skipped" // by a precondition, for example a gate that the release lacks
	NotRun  State = "not run" // the run ended before it
)

// Row is one spec with its result on both clusters.
type Row struct {
	Suite   string `json:"suite"`
	Spec    string `json:"spec"`
	Stock   State  `json:"stock"`
	Patched State  `json:"patched"`
	// Why is the start of the message with which the spec failed or was skipped without patches.
	Why string `json:"why,omitempty"`
	// Fixes are the fixes that the spec needs, Missing those of them that the release does not have.
	Fixes   []string `json:"fixes,omitempty"`
	Missing []string `json:"missing,omitempty"`
}

// tags are the labels that the framework adds to the name of a spec.
var tags = regexp.MustCompile(`\[(sig-[a-z]+|Feature:\w+|FeatureGate:\w+|Serial|Disruptive|Slow)\] ?`)

// Rows joins the results of a suite on both clusters by spec name, and sorts them.
func Rows(suite string, stock, patched []junit.Case) []Row {
	rows := map[string]*Row{}
	row := func(name string) *Row {
		if rows[name] == nil {
			spec := strings.TrimSpace(tags.ReplaceAllString(name, ""))
			rows[name] = &Row{Suite: suite, Spec: spec, Stock: NotRun, Patched: NotRun}
		}
		return rows[name]
	}
	for _, test := range stock {
		r := row(test.Name)
		r.Stock, r.Why = result(test)
	}
	for _, test := range patched {
		row(test.Name).Patched, _ = result(test)
	}
	var sorted []Row
	for _, r := range rows {
		sorted = append(sorted, *r)
	}
	slices.SortFunc(sorted, func(a, b Row) int { return cmp.Compare(a.Spec, b.Spec) })
	return sorted
}

func result(test junit.Case) (State, string) {
	switch why := test.Problem(); {
	case why != nil:
		return Failed, why.Gist()
	case test.Skipped != nil:
		return Skipped, test.Skipped.Gist()
	}
	return Passed, ""
}

// Limit is how long a spec may take without patches: twice as long as the slowest spec that passed with them,
// and at least a minute. A spec that waits for something that never happens would take several times as long.
func Limit(patched []junit.Case) time.Duration {
	slowest := 30 * time.Second
	for _, test := range patched {
		if state, _ := result(test); state == Passed {
			slowest = max(slowest, time.Duration(test.Seconds*float64(time.Second)))
		}
	}
	return (2 * slowest).Round(time.Second)
}

// Name says for each row which fixes its spec needs, from the ends of the names of such specs by
// fix, and which of them are not among given.
func Name(rows []Row, specs map[string][]string, given []string) {
	for i, r := range rows {
		for _, fix := range slices.Sorted(maps.Keys(specs)) {
			if !slices.ContainsFunc(specs[fix], func(spec string) bool { return strings.HasSuffix(r.Spec, " "+spec) }) {
				continue
			}
			rows[i].Fixes = append(rows[i].Fixes, fix)
			if !slices.Contains(given, fix) {
				rows[i].Missing = append(rows[i].Missing, fix)
			}
		}
	}
}

// FailedPatched returns the specs that failed with the patches, or with all fixes that they need.
func FailedPatched(rows []Row) (specs []string) {
	for _, r := range rows {
		if r.Patched == Failed || r.Stock == Failed && len(r.Fixes) > 0 && len(r.Missing) == 0 {
			specs = append(specs, r.Suite+": "+r.Spec)
		}
	}
	return specs
}

// WriteMarkdown returns a function that counts the specs and writes a table: without fixes of those that
// fail on release and pass with the patches, with fixes of those that fail or need one of them.
func WriteMarkdown(release string, fixes int) func(io.Writer, []Row) error {
	return func(w io.Writer, rows []Row) error {
		counts := map[State]int{}
		var table strings.Builder
		for _, r := range rows {
			if fixes == 0 && r.Patched != Passed {
				continue
			}
			counts[r.Stock]++
			spec := strings.ReplaceAll(r.Spec, "|", `\|`)
			if fixes > 0 && (r.Stock == Failed || len(r.Missing) < len(r.Fixes)) {
				fmt.Fprintf(&table, "| %s | %s | %s | %s | %s |\n", r.Suite, spec, r.Stock, strings.Join(r.Fixes, " "), strings.Join(r.Missing, " "))
			} else if r.Stock == Failed {
				fmt.Fprintf(&table, "| %s | %s |\n", r.Suite, spec)
			}
		}
		total := counts[Passed] + counts[Failed] + counts[Skipped] + counts[NotRun]
		text := fmt.Sprintf("With the patches %d specs pass on %s. Without them %d of these pass, %d fail, %d are skipped because\n"+
			"the release lacks what they need, and %d did not run. Those that fail:\n\n| suite | spec |\n|---|---|\n",
			total, release, counts[Passed], counts[Failed], counts[Skipped], counts[NotRun])
		if fixes > 0 {
			text = fmt.Sprintf("On %s with %d fixes %d specs pass, %d fail and %d are skipped.\n\n| suite | spec | result | needs | of it missing |\n|---|---|---|---|---|\n",
				release, fixes, counts[Passed], counts[Failed], counts[Skipped])
		}
		_, err := io.WriteString(w, text+table.String())
		return err
	}
}

// WriteTSV writes a line for each spec: suite, spec, and its state without and with the patches.
func WriteTSV(w io.Writer, rows []Row) error {
	return jsonout.WriteTSV(w, rows, func(r Row) []any { return []any{r.Suite, r.Spec, r.Stock, r.Patched} })
}
