package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
)

// Pin creates the folder of the series called name with the go.mod and go.sum that pin release,
// and returns the series, which has no patches yet. If the series is already based on release,
// Pin only returns it; if it is based on another release, that is an error.
//
// The go command downloads the modules and checks them with the checksum database.
func Pin(ctx context.Context, l layout.Layout, name, release string, step *progress.Step) (series.Series, error) {
	minor := semver.MajorMinor(release)
	if semver.Canonical(release) != release || minor == release {
		return series.Series{}, fmt.Errorf("%q is not a release: give one such as %s.0 with --release", release, minor)
	}
	switch s, err := series.Load(l, name); {
	case err == nil && s.Release == release:
		return s, nil
	case err == nil:
		return s, fmt.Errorf("series %s is based on %s: move it first with `podenv rebase --to %[1]s --release %[3]s`", name, s.Release, release)
	case !errors.Is(err, series.ErrUnknown):
		return s, err
	}
	dir := filepath.Join(l.Root, filepath.FromSlash(series.Folder(name)))
	if err := writePins(ctx, series.Series{Name: name, Release: release}, dir, step); err != nil {
		return series.Series{}, err
	}
	return series.Load(l, name)
}

// Repin returns s on another release of its minor, for Rebase. An empty release is that of the rebase in
// progress, or else the newest, but no older one than that of s. The series' folder stays as it is.
func Repin(ctx context.Context, l layout.Layout, s series.Series, release string, step *progress.Step) (series.Series, error) {
	switch st, err := readRebaseState(l.Rebase(s.Name)); {
	case err == nil && st.From != s.Name:
		return s, nil // patches of another series are being carried: Rebase says so
	case err == nil && release != "" && release != st.Release:
		return s, fmt.Errorf("a rebase of series %s to %s is in progress: finish it with `podenv rebase --continue`, or drop it with --abort", s.Name, st.Release)
	case err == nil:
		release = st.Release
	case !errors.Is(err, os.ErrNotExist):
		return s, err
	case release == "":
		if release, err = NewestRelease(ctx, s.Name); err != nil {
			return s, err
		}
		if semver.Compare(release, s.Release) < 0 {
			release = s.Release
		}
	}
	if release == s.Release {
		return s, nil
	}
	s.Release = release
	dir := filepath.Join(l.Cache("source"), "pins-"+s.Name)
	if err := writePins(ctx, s, dir, step); err != nil {
		return s, err
	}
	return s.At(dir)
}

// writePins writes the go.mod and go.sum that pin the release of s to dir.
func writePins(ctx context.Context, s series.Series, dir string, step *progress.Step) error {
	step.Now("getting the modules of %s", s.Release)
	goMod, goSum, err := pins(ctx, s)
	if err != nil {
		return fmt.Errorf("pinning %s: %w", s.Release, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// A folder with a go.mod is a series, so write it last.
	if err := renameio.WriteFile(filepath.Join(dir, "go.sum"), goSum, 0o644); err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(dir, "go.mod"), goMod, 0o644)
}

// NewestRelease returns the newest release in the module proxy for the series called name,
// without release candidates.
func NewestRelease(ctx context.Context, name string) (string, error) {
	minor := series.Minor(name)
	out, err := run.Command(ctx, "go", "list", "-m", "-versions", "-f", `{{join .Versions "\n"}}`, series.Series{Name: name}.Module()).
		Dir(os.TempDir()).Env("GOWORK=off", "GOFLAGS=", "GO111MODULE=on").Output()
	if err != nil {
		return "", fmt.Errorf("cannot download the list of releases: %w", err)
	}
	newest := ""
	for _, v := range strings.Fields(out) {
		if semver.MajorMinor(v) == minor && semver.Prerelease(v) == "" && semver.Compare(v, newest) > 0 {
			newest = v
		}
	}
	if newest == "" {
		return "", fmt.Errorf("the module proxy lists no release of %s: name one with --release", minor)
	}
	return newest, nil
}

// pins returns the go.mod and go.sum of a series: they require the main module of the release,
// and all staging modules that it replaces by folders.
func pins(ctx context.Context, s series.Series) (goMod, goSum []byte, err error) {
	none := map[string][]byte{"go.mod": []byte("module pins\n")}
	main, err := download(ctx, none, []module.Version{{Path: s.Module(), Version: s.Release}})
	if err != nil {
		return nil, nil, err
	}
	data, err := os.ReadFile(main[0].GoMod)
	if err != nil {
		return nil, nil, err
	}
	released, err := modfile.Parse(main[0].GoMod, data, nil)
	if err != nil {
		return nil, nil, err
	}
	version := s.Staging()
	var staging []module.Version
	for _, r := range released.Replace {
		if r.New.Path == stagingDir(r.Old.Path) && !strings.HasPrefix(r.Old.Path, samplePrefix) {
			staging = append(staging, module.Version{Path: r.Old.Path, Version: version})
		}
	}
	zips := main
	if len(staging) > 0 {
		more, err := download(ctx, none, staging)
		if err != nil {
			return nil, nil, err
		}
		zips = append(zips, more...)
	}
	slices.SortFunc(zips, func(a, b moduleZip) int { return strings.Compare(a.Path, b.Path) })
	return formatPins(series.Folder(s.Name), released.Go, zips)
}

const pinsComment = "// The release that this series of patches is based on. `podenv tree` downloads these\n" +
	"// modules and checks them against go.sum; nothing imports this module.\n"

func formatPins(folder string, language *modfile.Go, zips []moduleZip) (goMod, goSum []byte, err error) {
	f := new(modfile.File)
	if err := f.AddModuleStmt(ownModule + "/" + folder); err != nil {
		return nil, nil, err
	}
	if language != nil {
		if err := f.AddGoStmt(language.Version); err != nil {
			return nil, nil, err
		}
	}
	var sums bytes.Buffer
	for _, z := range zips {
		f.AddNewRequire(z.Path, z.Version.Version, false)
		fmt.Fprintf(&sums, "%[1]s %[2]s %[3]s\n%[1]s %[2]s/go.mod %[4]s\n", z.Path, z.Version.Version, z.Sum, z.GoModSum)
	}
	f.Cleanup()
	text, err := f.Format()
	return append([]byte(pinsComment), text...), sums.Bytes(), err
}
