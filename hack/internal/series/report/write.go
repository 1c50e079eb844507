package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteTable writes the reports as a table for people.
func WriteTable(w io.Writer, reports []Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SERIES\tRELEASE\tPATCHES\tLINES IN EXISTING FILES\tNEW FILES\tGATE\tSTAGE\tDEFAULT\t")
	for _, r := range reports {
		head := fmt.Sprintf("%s\t%s\t%d, %d lines\t%d in %d files\t%d, %d lines, %d own", r.Series, r.Release, r.Patches, r.PatchLines,
			r.Touched.Lines(), r.Touched.Files, r.NewFiles.Files, r.NewFiles.Lines, len(r.NewFiles.Own))
		for _, g := range r.Gates {
			fmt.Fprintf(t, "%s\t%s\t%s\t%t\t%s\n", head, g.Name, stage(g.Stage), g.Default, remark(r, g))
			head = "\t\t\t\t"
		}
		if len(r.Gates) == 0 {
			fmt.Fprintf(t, "%s\t\t\t\t\n", head)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range reports {
		if len(r.NewFiles.Own) > 0 {
			if _, err := fmt.Fprintf(w, "%s has its own form of %s\n", r.Series, strings.Join(r.NewFiles.Own, ", ")); err != nil {
				return err
			}
		}
		if len(r.Replaced) > 0 {
			if _, err := fmt.Fprintf(w, "%s has another release's %s\n", r.Series, strings.Join(r.Replaced, ", ")); err != nil {
				return err
			}
		}
	}
	return nil
}

// stage is the name of a reported stage.
func stage(reported string) string { return cmp.Or(reported, "GA") }

// remark says what is wrong with the gate, or why that is unknown.
func remark(r Report, g Gate) string {
	switch {
	case g.Wrong != "":
		return "WRONG: " + g.Wrong
	case !r.Built:
		return fmt.Sprintf("not built: podenv build --series %s", r.Series)
	}
	return ""
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
