// Package report reports what each series of patches costs and provides: the number of
// patches, the lines that they change in existing files, and the feature gates of the built
// binaries.
package report

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/jsonout"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/node"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
)

// Report describes one series.
type Report struct {
	Series  string `json:"series"`  // "v1.33"
	Release string `json:"release"` // "v1.33.13"
	// Replaced are the release's modules that the series uses at another version, because the
	// module proxy lacks theirs; see the replace lines of patches/<series>/go.mod.
	Replaced []string `json:"replaced,omitempty"`
	// Patches is the number of patches, PatchLines that of their lines, including messages and
	// context.
	Patches    int `json:"patches"`
	PatchLines int `json:"patchLines"`
	// Touched counts what the patches change in existing files, NewFiles the files they add.
	Touched  Touched  `json:"touched"`
	NewFiles NewFiles `json:"newFiles"`
	Built    bool     `json:"built"` // the binaries that report the gates are built
	Gates    []Gate   `json:"gates"` // those in featuregates/ for the minor, sorted by name
}

// Touched counts the changes of patches in files of the release: the cost of the next rebase.
// New files, and changes of them by later patches, do not count.
type Touched struct {
	Files   int `json:"files"`
	Added   int `json:"added"`   // lines
	Removed int `json:"removed"` // lines
}

// NewFiles counts the new files that the patches of a series add, see series.NewFileFolders.
type NewFiles struct {
	Files int `json:"files"`
	Lines int `json:"lines"` // without the license header
	// Own are the paths of those of which the series has its own version.
	Own []string `json:"own,omitempty"`
}

// Gate is a feature gate as featuregates/ declares it.
type Gate struct {
	Name    string `json:"name"`
	Stage   string `json:"stage"` // "ALPHA", "BETA" or empty for GA
	Default bool   `json:"default"`
	Wrong   string `json:"wrong,omitempty"` // what a binary says instead; empty if they agree
}

// Of reports on the series s. It starts the built components for a moment, which confirms the
// gates of featuregates/.
func Of(ctx context.Context, l layout.Layout, s series.Series) (Report, error) {
	r := Report{Series: s.Name, Release: s.Release, Replaced: s.Replaced(), Gates: []Gate{}}
	if err := r.countPatches(s); err != nil {
		return Report{}, err
	}
	if s.IsTekton() {
		return r, nil // no feature gates
	}
	want, err := featuregates.In(s.Name)
	if err != nil {
		return Report{}, err
	}
	binaries := filepath.Join(l.Build(s.Name), "bin")
	r.Built = !slices.ContainsFunc(components(want), func(component string) bool {
		_, err := os.Stat(filepath.Join(binaries, component))
		return err != nil
	})
	for _, state := range want {
		r.Gates = append(r.Gates, Gate{Name: string(state.Name), Stage: string(state.Spec.PreRelease), Default: state.Spec.Default})
	}
	if r.Built {
		err = r.readGates(ctx, binaries, want)
	}
	return r, err
}

func (r *Report) countPatches(s series.Series) error {
	patches, err := s.Describe()
	if err != nil {
		return err
	}
	r.Patches = len(patches)
	own, _ := s.NewFileFolders()
	existing, created := map[string]bool{}, map[string]bool{}
	for _, p := range patches {
		r.PatchLines += p.StoredLines
		for _, name := range p.NewFiles {
			created[name] = true
			r.NewFiles.Files++
			r.NewFiles.Lines += bytes.Count(s.Header.Cut(name, []byte(p.Added[name])), []byte("\n"))
			if s.NewFileFolder(name) == own {
				r.NewFiles.Own = append(r.NewFiles.Own, name)
			}
		}
		for _, f := range p.Diff {
			switch {
			case f.IsNew:
				created[f.NewName] = true
			case !created[f.OldName]:
				existing[f.OldName] = true
				for _, fragment := range f.TextFragments {
					r.Touched.Added += int(fragment.LinesAdded)
					r.Touched.Removed += int(fragment.LinesDeleted)
				}
			}
		}
	}
	r.Touched.Files = len(existing)
	return nil
}

// components are the components that use one of the gates.
func components(states []featuregates.State) []string {
	var names []string
	for _, state := range states {
		names = append(names, state.Components...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// readGates compares the gates with what the binaries say: whether they start with the gate, and
// what --help says of it.
func (r *Report) readGates(ctx context.Context, binaries string, want []featuregates.State) error {
	defaults := map[string]bool{}
	for _, g := range r.Gates {
		defaults[g.Name] = g.Default
	}
	for _, component := range components(want) {
		binary := filepath.Join(binaries, component)
		help, err := run.Command(ctx, binary, "--help").Output()
		var known map[string]bool
		if err == nil {
			known, err = node.Build{Component: component, Binary: binary}.KnownGates(ctx, defaults)
		}
		if err != nil {
			return fmt.Errorf("asking %s of series %s for its feature gates: %w", component, r.Series, err)
		}
		for i, state := range want {
			g := &r.Gates[i]
			if g.Wrong != "" || !slices.Contains(state.Components, component) {
				continue
			}
			if _, ok := known[g.Name]; !ok {
				g.Wrong = fmt.Sprintf("%s does not know it: if the build is older than the patches, podenv build --series %s", component, r.Series)
			} else if says, listed := node.GatesInHelp(help)[g.Name]; listed && says != (node.HelpGate{Stage: g.Stage, Default: g.Default}) {
				g.Wrong = fmt.Sprintf("%s --help says %s - default=%t", component, says.Stage, says.Default)
			} else if !listed && g.Stage != "" {
				g.Wrong = component + " --help says nothing of it, as of a gate that is GA"
			}
		}
	}
	return nil
}

// Disagree reports whether any gate differs from featuregates/. It decides the exit status of
// podenv series.
func Disagree(reports []Report) bool {
	return slices.ContainsFunc(reports, func(r Report) bool {
		return slices.ContainsFunc(r.Gates, func(g Gate) bool { return g.Wrong != "" })
	})
}

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
			fmt.Fprintf(t, "%s\t%s\t%s\t%t\t%s\n", head, g.Name, cmp.Or(g.Stage, "GA"), g.Default, wrong(g))
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
		if err := jsonout.WriteTSV(w, r.Gates, func(g Gate) []any {
			return []any{r.Series, r.Release, r.Patches, r.Touched.Files, r.Touched.Added, r.Touched.Removed, g.Name, cmp.Or(g.Stage, "GA"),
				g.Default, remark(r, g), r.PatchLines, r.NewFiles.Files, r.NewFiles.Lines, len(r.NewFiles.Own)}
		}); err != nil {
			return err
		}
	}
	return nil
}

// WritePatchesTable writes patches as a table for people.
func WritePatchesTable(w io.Writer, patches []series.Patch) error {
	return jsonout.WriteTable(w, "SERIES\tNUMBER\tLINES\tOF TESTS\tPATCH\tFATE", patches, func(p series.Patch) []any {
		return []any{p.Series, fmt.Sprintf("%.4s", p.File), p.Lines, p.TestLines, p.Title, p.Fate}
	})
}

// WritePatchesTSV writes one line per patch, without a header: series, file, lines that it adds
// without tests, lines of tests, title, fate.
func WritePatchesTSV(w io.Writer, patches []series.Patch) error {
	return jsonout.WriteTSV(w, patches, func(p series.Patch) []any { return []any{p.Series, p.File, p.Lines, p.TestLines, p.Title, p.Fate} })
}
