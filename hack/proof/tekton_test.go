package proof

import (
	"errors"
	"slices"

	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/series/report"
	"podenv.dev/hack/internal/source"
	"podenv.dev/hack/internal/tekton"
)

// tektonSeries returns the series of Tekton.
func tektonSeries() ([]series.Series, error) {
	all, err := series.LoadAll(repo)
	return slices.DeleteFunc(all, func(s series.Series) bool { return !s.IsTekton() }), err
}

// tektonRoundTrip checks for each series of Tekton that its tree converts to the same patch files,
// and that git am of its export onto a pristine tag gives the tree.
func tektonRoundTrip(c *check) error {
	all, err := tektonSeries()
	if err == nil && len(all) == 0 {
		err = errors.New("patches/tekton has no series: make one with `podenv rebase`")
	}
	for _, s := range all {
		c.part(s.Name, func() error {
			t, err := source.Assemble(c.ctx, repo, s, source.Options{}, nil)
			if err != nil {
				return err
			}
			_, err = c.applyExport(t)
			return errors.Join(roundTrip(c, t), err)
		})
	}
	return err
}

// tektonTests runs Tekton's own tests, and ours, of every package that the patches touch.
func tektonTests(c *check) error {
	all, err := tektonSeries()
	for _, s := range all {
		t, err := source.Assemble(c.ctx, repo, s, source.Options{}, nil)
		if err != nil {
			return err
		}
		cases, err := c.touchedTests(t)
		c.count(cases)
		if err != nil {
			return err
		}
	}
	return err
}

// verifyTekton records in row how far a series of Tekton got, and returns the error that stopped it.
func (c *check) verifyTekton(s series.Series, row *verified) error {
	c.step.Now("assembling the tree")
	t, err := source.Assemble(c.ctx, repo, s, source.Options{}, nil)
	if err != nil {
		return err
	}
	row.Assembled = true
	if _, err := tekton.Build(c.ctx, repo, t, nil); err != nil {
		return err
	}
	row.Compiled = true
	if err := c.verifyTests(t, row); err != nil {
		return err
	}
	var none struct{}
	if err := c.once(t, "each patch by itself", &none, func() error { return eachPatch(c, t) }); err != nil {
		return err
	}
	row.Report, err = report.Of(c.ctx, repo, s)
	return err
}
