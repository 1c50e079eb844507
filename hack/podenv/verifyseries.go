package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/series/report"
	"podenv.dev/hack/internal/source"
	"podenv.dev/hack/internal/verify"
)

// verifySeries applies, generates, compiles and tests every series, and prints a table.
// A series that fails does not keep the others from being verified.
func (a *app) verifySeries(ctx context.Context) error {
	names, err := series.Names(a.layout)
	if err != nil {
		return err
	}
	reporter := a.reporter()
	var rows []report.Verified
	var failures []string
	for _, name := range names {
		s, err := series.Load(a.layout, name)
		if err != nil {
			return err
		}
		p := &pipeline.Pipeline{Layout: a.layout, Series: s, Reporter: reporter}
		row, err := a.verifyOne(ctx, p)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failures = append(failures, fmt.Sprintf("%s: %v", name, err))
		}
		rows = append(rows, row)
	}
	if err := report.WriteVerified(a.out, rows); err != nil {
		return err
	}
	if len(failures) > 0 {
		return fmt.Errorf("%d of %d series failed:\n%s", len(failures), len(names), strings.Join(failures, "\n"))
	}
	return nil
}

// verifyOne returns how far the series got, and why it got no further.
func (a *app) verifyOne(ctx context.Context, p *pipeline.Pipeline) (report.Verified, error) {
	row := report.Verified{Series: p.Series.Name, Release: p.Series.Release}
	if err := p.Packages(ctx); err != nil {
		return row, err
	}
	t, err := p.Tree(ctx, source.Options{})
	if err != nil {
		return row, err
	}
	row.Assembled = true
	if _, err := p.Binaries(ctx, t, build.Components); err != nil {
		return row, err
	}
	row.Compiled = true
	step := p.Reporter.Step("tests of " + p.Series.Name)
	row.Tests, err = a.seriesTests(ctx, t, step)
	if err == nil && row.Tests.Failed > 0 {
		err = fmt.Errorf("%d tests of the touched packages fail: see %s", row.Tests.Failed, step.LogPath())
	}
	if err := step.End(err); err != nil {
		return row, err
	}
	if row.Report, err = report.Of(ctx, a.layout, p.Series); err != nil {
		return row, err
	}
	if report.Disagree([]report.Report{row.Report}) {
		return row, fmt.Errorf("its feature gates are not those of featuregates/: see podenv series")
	}
	return row, nil
}

// seriesTests runs Kubernetes' own tests of the packages that the series touches, unless
// they have passed before on the same tree with the same Go.
func (a *app) seriesTests(ctx context.Context, t *source.Tree, step *progress.Step) (counts junit.Counts, err error) {
	key := digest.Of(t.Key, runtime.Version())
	kept := filepath.Join(a.layout.Cache("verify-series"), key[:32]+".json")
	if data, err := os.ReadFile(kept); err == nil && json.Unmarshal(data, &counts) == nil {
		step.Cached("passed before")
		return counts, nil
	}
	tree := func(context.Context) (*source.Tree, error) { return t, nil }
	stock := func(ctx context.Context) (*source.Tree, error) {
		return source.Assemble(ctx, a.layout, t.Series, source.Options{Stock: true}, nil)
	}
	cases, err := verify.Upstream(a.layout, tree, stock).Run(ctx, step)
	counts = junit.Count(cases)
	if err != nil || counts.Failed > 0 {
		return counts, err
	}
	data, err := json.Marshal(counts)
	if err != nil {
		return counts, err
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return counts, err
	}
	return counts, renameio.WriteFile(kept, data, 0o644)
}
