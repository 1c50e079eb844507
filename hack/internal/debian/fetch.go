package debian

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// GoneError says that the archive no longer has the version that a lock pins.
type GoneError struct {
	Package   Package
	Candidate string // the version that the archive has now; empty if it has none
}

func (e *GoneError) Error() string {
	now := "has no other version"
	if e.Candidate != "" {
		now = "has " + e.Candidate + " now"
	}
	return fmt.Sprintf("the Debian archive no longer has %s: it %s; podenv image --refresh-packages pins what it has", e.Package, now)
}

// Fetch returns the .deb files of packages, in their order. It keeps them in the folder
// dir, downloads only what is missing there, and needs no root. A pinned version that
// the archive has dropped is a *GoneError.
func Fetch(ctx context.Context, dir string, packages []Package, step *progress.Step) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var missing []Package
	for _, p := range packages {
		if _, ok := find(dir, p); !ok {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		if err := download(ctx, dir, missing, step); err != nil {
			return nil, err
		}
	}
	debs := make([]string, len(packages))
	for i, p := range packages {
		deb, ok := find(dir, p)
		if !ok {
			return nil, fmt.Errorf("apt-get download left no file for %s in %s", p, dir)
		}
		debs[i] = deb
	}
	return debs, nil
}

// find returns the file of p in dir. apt names it name_version_arch.deb, with the
// version's colon escaped.
func find(dir string, p Package) (string, bool) {
	version := strings.ReplaceAll(p.Version, ":", "%3a")
	found, err := filepath.Glob(filepath.Join(dir, p.Name+"_"+version+"_*.deb"))
	if err != nil || len(found) == 0 {
		return "", false
	}
	return found[0], true
}

// download gets packages into dir: first by the host's package lists, which are often
// fresh, and else by lists of its own, so that the host's stay as they are.
func download(ctx context.Context, dir string, packages []Package, step *progress.Step) error {
	beside, err := os.MkdirTemp(dir, ".download-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(beside)
	step.Now("downloading %d Debian packages", len(packages))
	if err := apt(ctx, nil, beside, packages, step); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, needed := range []string{"lists/partial", "cache/archives/partial"} {
			if err := os.MkdirAll(filepath.Join(beside, needed), 0o755); err != nil {
				return err
			}
		}
		own := []string{
			"-o", "Dir::State::lists=" + filepath.Join(beside, "lists"),
			"-o", "Dir::Cache=" + filepath.Join(beside, "cache"),
			"-o", "APT::Sandbox::User=",
		}
		step.Now("downloading Debian's package lists")
		update := append(own[:len(own):len(own)], "update")
		updateErr := run.Command(ctx, "apt-get", update...).Env("LC_ALL=C").Log(step.Log()).Run()
		if err := apt(ctx, own, beside, packages, step); err != nil {
			// One broken source of many is no reason to fail, unless it had the packages.
			if updateErr != nil {
				return fmt.Errorf("downloading Debian's package lists; check the network and the sources of apt: %w", updateErr)
			}
			return explain(ctx, own, packages, err)
		}
	}
	debs, err := filepath.Glob(filepath.Join(beside, "*.deb"))
	if err != nil {
		return err
	}
	for _, deb := range debs {
		if err := os.Rename(deb, filepath.Join(dir, filepath.Base(deb))); err != nil {
			return err
		}
	}
	return nil
}

func apt(ctx context.Context, options []string, dir string, packages []Package, step *progress.Step) error {
	args := append(options[:len(options):len(options)], "-o", "APT::Sandbox::User=", "download")
	for _, p := range packages {
		args = append(args, p.String())
	}
	return run.Command(ctx, "apt-get", args...).Dir(dir).Env("LC_ALL=C").Log(step.Log()).Run()
}

// explain returns a *GoneError if one of packages is why apt failed with err.
func explain(ctx context.Context, options []string, packages []Package, err error) error {
	for _, p := range packages {
		args := append(options[:len(options):len(options)], "policy", p.Name)
		out, policyErr := run.Command(ctx, "apt-cache", args...).Env("LC_ALL=C").Output()
		if policyErr != nil || offers(out, p.Version) {
			continue
		}
		return &GoneError{Package: p, Candidate: candidate(out)}
	}
	return fmt.Errorf("downloading Debian packages: %w", err)
}

// offers says whether apt-cache's policy lists version in its version table.
func offers(policy, version string) bool {
	_, table, _ := strings.Cut(policy, "Version table:")
	for _, line := range strings.Split(table, "\n") {
		words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "***"))
		if len(words) > 0 && words[0] == version {
			return true
		}
	}
	return false
}

// candidate is the version that apt-cache's policy would install.
func candidate(policy string) string {
	for _, line := range strings.Split(policy, "\n") {
		if version, ok := strings.CutPrefix(strings.TrimSpace(line), "Candidate: "); ok && version != "(none)" {
			return version
		}
	}
	return ""
}
