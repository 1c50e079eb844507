package proof

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/series/report"
	"podenv.dev/hack/internal/source"
)

// TestSeries applies, generates, compiles and tests every series, and prints a table. It continues
// after a series that fails.
func TestSeries(t *testing.T) {
	requireSeries(t)
	names, err := series.Names(repo)
	if err != nil {
		t.Fatal(err)
	}
	var rows []verified
	for _, name := range names {
		lane{t}.check("series "+name, "series", func(*check) {}, func(c *check) error {
			p, err := newPipeline(name)
			if err != nil {
				return err
			}
			row := verified{Series: name, Release: p.Series.Release}
			err = c.verify(p, &row)
			rows = append(rows, row)
			return err
		})
	}
	ofTekton, err := tektonSeries()
	if err != nil {
		t.Error(err)
	}
	for _, s := range ofTekton {
		lane{t}.check("series "+s.Name, "series", func(*check) {}, func(c *check) error {
			row := verified{Series: s.Name, Release: s.Release}
			err := c.verifyTekton(s, &row)
			rows = append(rows, row)
			return err
		})
	}
	var table strings.Builder
	if err := writeVerified(&table, rows); err != nil {
		t.Error(err)
	}
	steps.Reporter.Print("\n" + table.String())
}

// verify records in row how far the series got, and returns the error that stopped it.
func (c *check) verify(p *pipeline.Pipeline, row *verified) error {
	if err := p.Packages(c.ctx); err != nil {
		return err
	}
	t, err := p.Tree(c.ctx, source.Options{})
	if err != nil {
		return err
	}
	row.Assembled = true
	if _, err := p.Binaries(c.ctx, t, build.Components); err != nil {
		return err
	}
	row.Compiled = true
	if err := c.verifyTests(t, row); err != nil {
		return err
	}
	var sources []string
	for _, pattern := range []string{"*.go", "*/*.go"} {
		files, err := filepath.Glob(filepath.Join(repo.Root, "hack/internal/codegen", pattern))
		if err != nil {
			return err
		}
		sources = append(sources, files...)
	}
	var none struct{}
	err = c.once(t, "generators", &none, func() error {
		stock, err := p.Tree(c.ctx, source.Options{Stock: true}) // a step of its own
		if err != nil {
			return err
		}
		return c.codegenTest(stock, reachTest)
	}, sources...)
	if err != nil {
		return err
	}
	if row.Report, err = report.Of(c.ctx, repo, p.Series); err != nil {
		return err
	}
	if report.Disagree([]report.Report{row.Report}) {
		return errors.New("its feature gates are not those of featuregates/: see podenv series")
	}
	return nil
}

// verifyTests runs the tests of the packages that the series of t touches, and counts them in row.
func (c *check) verifyTests(t *source.Tree, row *verified) error {
	return c.once(t, "tests", &row.Tests, func() error {
		cases, err := c.touchedTests(t)
		row.Tests = junit.Count(cases)
		c.count(cases)
		return err
	})
}

// once runs prove unless it passed before with the same tree, version of Go and files of this
// repository. In that case it sets result to the value that it had.
func (c *check) once(t *source.Tree, what string, result any, prove func() error, files ...string) error {
	sums, err := digest.Files(files...)
	if err != nil {
		return err
	}
	key := digest.Of(append(sums, what, t.Key, runtime.Version())...)
	passed := filepath.Join(repo.Cache("verify-series"), key[:32]+".json")
	if data, err := os.ReadFile(passed); err == nil && json.Unmarshal(data, result) == nil {
		c.part(what+": passed before on this tree", func() error { return nil })
		return nil
	}
	if err := prove(); err != nil || c.Failed() {
		return err
	}
	data, err := json.Marshal(result)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(passed), 0o755); err != nil {
		return err
	}
	return renameio.WriteFile(passed, data, 0o644)
}

// verified is how far a series got from its patches to tested binaries.
type verified struct {
	Series, Release string
	// Assembled: the patches apply and code was generated. Compiled: all components compile.
	Assembled, Compiled bool
	// Tests are those of the packages that the series touches.
	Tests junit.Counts
	// Report is that of a series whose tests have passed.
	Report report.Report
}

// writeVerified writes a table with a line for each series.
func writeVerified(w io.Writer, rows []verified) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SERIES\tRELEASE\tPATCHES\tAPPLY, GENERATE\tCOMPILE\tTESTS\tGATES")
	for _, r := range rows {
		patches, tests, gates := "", "", ""
		if r.Tests.Total() > 0 {
			tests = r.Tests.String()
		}
		if r.Report.Patches > 0 {
			patches = fmt.Sprint(r.Report.Patches)
		}
		if r.Report.Built { // Tekton has no feature gates
			gates = verdict(!report.Disagree([]report.Report{r.Report}))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Series, r.Release, patches, verdict(r.Assembled), verdict(r.Compiled), tests, gates)
	}
	return t.Flush()
}

func verdict(ok bool) string {
	if ok {
		return "ok"
	}
	return "FAIL"
}
