package report

import (
	"fmt"
	"io"
	"text/tabwriter"

	"podenv.dev/hack/internal/junit"
)

// Verified says how far a series got on the way from its patches to tested binaries.
type Verified struct {
	Series, Release string
	// Assembled says that the patches apply and that code was generated; Compiled that
	// all components were.
	Assembled, Compiled bool
	// Tests are those of the packages that the series touches.
	Tests junit.Counts
	// Report is that of a series whose tests have passed.
	Report Report
}

// WriteVerified writes a table for the user, a series a line.
func WriteVerified(w io.Writer, rows []Verified) error {
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
			gates = verdict(!Disagree([]Report{r.Report}))
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
