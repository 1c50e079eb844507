package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"podenv.dev/hack/internal/series"
)

// WriteTable writes the reports as a table for people.
func WriteTable(w io.Writer, reports []Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SERIES\tRELEASE\tPATCHES\tLINES IN EXISTING FILES\tNEW FILES\tGATE\tSTAGE\tDEFAULT\tREMARK")
	var notBuilt []string
	for _, r := range reports {
		if len(r.Gates) > 0 && !r.Built {
			notBuilt = append(notBuilt, r.Series)
		}
		head := fmt.Sprintf("%s\t%s\t%d, %d lines\t%d in %d files\t%d, %d lines, %d own", r.Series, r.Release, r.Patches, r.PatchLines,
			r.Touched.Added+r.Touched.Removed, r.Touched.Files, r.NewFiles.Files, r.NewFiles.Lines, len(r.NewFiles.Own))
		for _, g := range r.Gates {
			fmt.Fprintf(t, "%s\t%s\t%s\t%t\t%s\n", head, g.Name, stage(g.Stage), g.Default, wrong(g))
			head = "\t\t\t\t"
		}
		if len(r.Gates) == 0 {
			fmt.Fprintf(t, "%s\t\t\t\t\n", head)
		}
	}
	if len(notBuilt) > 0 {
		fmt.Fprintf(t, "not built, so the gates are those of featuregates/: %s (podenv build --series %s)\n", strings.Join(notBuilt, ", "), notBuilt[0])
	}
	for _, r := range reports {
		if len(r.NewFiles.Own) > 0 {
			fmt.Fprintf(t, "%s has its own form of %s\n", r.Series, strings.Join(r.NewFiles.Own, ", "))
		}
		if len(r.Replaced) > 0 {
			fmt.Fprintf(t, "%s has another release's %s\n", r.Series, strings.Join(r.Replaced, ", "))
		}
	}
	return t.Flush()
}

// stage is the name of a reported stage.
func stage(reported string) string { return cmp.Or(reported, "GA") }

// wrong says what is wrong with the gate.
func wrong(g Gate) string {
	if g.Wrong == "" {
		return ""
	}
	return "WRONG: " + g.Wrong
}

// remark is wrong(g), or says that nobody has asked the binaries.
func remark(r Report, g Gate) string {
	if !r.Built {
		return "not built: podenv build --series " + r.Series
	}
	return wrong(g)
}

// WriteTSV writes one line per gate, without a header: series, release, patches, files touched,
// lines added, lines removed, gate, stage, default, remark, lines of patches, new files, lines
// of new files, own versions of new files.
func WriteTSV(w io.Writer, reports []Report) error {
	for _, r := range reports {
		for _, g := range r.Gates {
			_, err := fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%t\t%s\t%d\t%d\t%d\t%d\n", r.Series, r.Release, r.Patches,
				r.Touched.Files, r.Touched.Added, r.Touched.Removed, g.Name, stage(g.Stage), g.Default, remark(r, g),
				r.PatchLines, r.NewFiles.Files, r.NewFiles.Lines, len(r.NewFiles.Own))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// WritePatchesTable writes patches as a table for people.
func WritePatchesTable(w io.Writer, patches []series.Patch) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SERIES\tNUMBER\tLINES\tOF TESTS\tPATCH\tFATE")
	for _, p := range patches {
		fmt.Fprintf(t, "%s\t%.4s\t%d\t%d\t%s\t%s\n", p.Series, p.File, p.Lines, p.TestLines, p.Title, p.Fate)
	}
	return t.Flush()
}

// WritePatchesTSV writes one line per patch, without a header: series, file, lines that it adds
// without tests, lines of tests, title, fate.
func WritePatchesTSV(w io.Writer, patches []series.Patch) error {
	for _, p := range patches {
		if _, err := fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\n", p.Series, p.File, p.Lines, p.TestLines, p.Title, p.Fate); err != nil {
			return err
		}
	}
	return nil
}
