package conformance

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/jsonout"
	"podenv.dev/hack/internal/junit"
)

// results is junit_01.xml, with the results of specs on one build.
type results struct {
	file    string
	XMLName xml.Name `xml:"testsuites"`
	Suite   struct {
		Name     string       `xml:"name,attr"`
		Build    string       `xml:"package,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Cases    []junit.Case `xml:"testcase"`
	} `xml:"testsuite"`
}

// The states of a spec.
const (
	Passed  = "passed"
	Flaky   = "flaky" // it has failed on the same build, and then passed
	Failed  = "failed"
	LeftOut = "left out"
)

// Row is the result of one spec.
type Row struct {
	Run     string  `json:"run"` // Parallel or Serial
	Spec    string  `json:"spec"`
	State   string  `json:"state"`
	Seconds float64 `json:"seconds"`
	Why     string  `json:"why,omitempty"` // if it has not passed at once
}

// load reads the results of earlier runs, and removes those of another build, cluster or focus. It also
// returns how long the specs of each run took, on any build.
func (o Options) load() (r *results, last map[string]time.Duration, err error) {
	r, last = &results{file: filepath.Join(o.Dir, "junit_01.xml")}, map[string]time.Duration{}
	data, err := os.ReadFile(r.file)
	if err == nil {
		err = xml.Unmarshal(data, r)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("reading %s: %w; delete it to start anew", r.file, err)
	}
	for _, row := range r.rows([]string{Parallel, Serial}) {
		last[row.Run] += time.Duration(row.Seconds) * time.Second
	}
	last[Parallel] /= time.Duration(max(1, o.Procs))
	if build := o.Cluster + " " + o.Specs.Key + o.Focus; o.Again || r.Suite.Build != build {
		r.Suite.Build, r.Suite.Cases = build, nil
		if err := os.Remove(filepath.Join(o.Dir, "e2e.log")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
	}
	r.Suite.Cases = slices.DeleteFunc(r.Suite.Cases, func(c junit.Case) bool { return !isSpec(c) }) // of a run that is over
	return r, last, nil
}

// skippedItself is how the message of a spec that skipped itself begins. One that was not selected has
// no reason.
const skippedItself = "skipped - "

// add adds the results of a run and returns how many are of specs. It leaves out those that were interrupted.
func (r *results) add(cases []junit.Case) (n int) {
	for _, c := range cases {
		failed := c.Problem() != nil
		unselected := c.Skipped != nil && !strings.HasPrefix(c.Skipped.Message, skippedItself)
		if c.Status == "interrupted" || unselected || !failed && !isSpec(c) {
			continue
		}
		if i := slices.IndexFunc(r.Suite.Cases, func(old junit.Case) bool { return old.Name == c.Name }); i >= 0 {
			if before := r.Suite.Cases[i].Problem(); before != nil && !failed && c.Skipped == nil {
				c.Status = Flaky + ": " + before.Gist()
			}
			r.Suite.Cases = slices.Delete(r.Suite.Cases, i, i+1)
		}
		r.Suite.Cases = append(r.Suite.Cases, c)
		if isSpec(c) {
			n++
		}
	}
	return n
}

// isSpec reports whether c is a spec. Others are set-up and clean-up of a run.
func isSpec(c junit.Case) bool { return strings.HasPrefix(c.Name, "[It] ") }

func (r *results) save() error {
	counts := junit.Count(r.Suite.Cases)
	r.Suite.Name, r.Suite.Tests, r.Suite.Failures, r.Suite.Skipped = "Kubernetes e2e suite", counts.Total(), counts.Failed, counts.Skipped
	data, err := xml.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(r.file, append([]byte(xml.Header), data...), 0o644)
}

// rows returns the results of the specs of runs.
func (r *results) rows(runs []string) (rows []Row) {
	for _, c := range r.Suite.Cases {
		row := Row{Run: Parallel, Spec: strings.TrimPrefix(c.Name, "[It] "), State: Passed, Seconds: c.Seconds}
		if strings.Contains(row.Spec, "[Serial]") {
			row.Run = Serial
		}
		if c.Problem() != nil {
			row.State, row.Why = Failed, c.Problem().Gist()
		} else if c.Skipped != nil {
			row.State, row.Why = LeftOut, strings.TrimPrefix(c.Skipped.Gist(), skippedItself)
		} else if before, ok := strings.CutPrefix(c.Status, Flaky); ok {
			row.State, row.Why = Flaky, "failed before"+before
		}
		if slices.Contains(runs, row.Run) || !isSpec(c) {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.Spec, b.Spec)) })
	return rows
}

// WriteTable writes the counts of each run, and the specs that have not passed at once.
func WriteTable(w io.Writer, rows []Row) error {
	counts, why := map[string]map[string]int{Parallel: {}, Serial: {}}, ""
	for _, r := range rows {
		counts[r.Run][r.State]++
		if r.State != Passed {
			why += fmt.Sprintf("%s: %s\n  %s\n", r.State, r.Spec, r.Why)
		}
	}
	table := "RUN       PASSED  FLAKY  FAILED  LEFT OUT\n"
	for _, run := range []string{Parallel, Serial} {
		if len(counts[run]) > 0 {
			table += fmt.Sprintf("%-8s  %6d  %5d  %6d  %8d\n", run, counts[run][Passed], counts[run][Flaky], counts[run][Failed], counts[run][LeftOut])
		}
	}
	_, err := io.WriteString(w, table+why)
	return err
}

// WriteTSV writes a line for each spec: run, spec, state, seconds, reason.
func WriteTSV(w io.Writer, rows []Row) error {
	return jsonout.WriteTSV(w, rows, func(r Row) []any { return []any{r.Run, r.Spec, r.State, fmt.Sprintf("%.0f", r.Seconds), r.Why} })
}
