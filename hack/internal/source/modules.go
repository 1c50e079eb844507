package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"

	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
)

// kubernetes is the main module of a release. Its staging modules are separate modules.
const kubernetes = "k8s.io/kubernetes"

// moduleZip is a module of the release in the Go module cache.
type moduleZip struct {
	module.Version
	Zip   string // path of the archive
	Info  string // path of the JSON file with the version's time
	GoMod string // path of its go.mod

	Sum, GoModSum string // as in go.sum
}

// downloadModules downloads the modules that the series pins into the Go module cache, and
// checks each against the series' go.sum.
func downloadModules(ctx context.Context, s series.Series) ([]moduleZip, error) {
	pins, errPins := readPins(s)
	files, errFiles := pinFiles(s)
	if err := errors.Join(errPins, errFiles); err != nil {
		return nil, err
	}
	sums := readSums(files["go.sum"])
	for _, m := range pins {
		if sums[m] == "" {
			return nil, fmt.Errorf("%s/go.sum has no checksum of %s: add it with `cd %s && GOFLAGS=-mod=mod go mod download %s`", s.Pins, m, s.Pins, m)
		}
	}
	zips, err := download(ctx, files, pins)
	if err != nil {
		return nil, err
	}
	return zips, checkZips(ctx, zips, sums)
}

// download downloads modules into the Go module cache. files are the go.mod and go.sum of the
// module that go does it in: a copy, because go adds missing lines to go.sum.
func download(ctx context.Context, files map[string][]byte, modules []module.Version) ([]moduleZip, error) {
	dir, err := os.MkdirTemp("", "podenv-modules-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return nil, err
		}
	}
	args := []string{"mod", "download", "-json"}
	for _, m := range modules {
		args = append(args, m.String())
	}
	out, runErr := run.Command(ctx, "go", args...).Dir(dir).
		Env("GOWORK=off", "GOFLAGS=", "GO111MODULE=on").Output()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	zips, err := readDownloads(out)
	if err == nil && runErr != nil {
		err = explainDownload(runErr)
	}
	return zips, err
}

// readDownloads parses the output of `go mod download -json`.
func readDownloads(out string) ([]moduleZip, error) {
	var zips []moduleZip
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var m struct {
			moduleZip
			Error string
		}
		err := d.Decode(&m)
		if errors.Is(err, io.EOF) {
			return zips, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the output of go mod download: %w", err)
		}
		if m.Error != "" {
			return nil, downloadError(m.Version, m.Error)
		}
		zips = append(zips, m.moduleZip)
	}
}

// checkZips hashes the archives again, because go trusts the hash that it recorded when it
// downloaded an archive.
func checkZips(ctx context.Context, zips []moduleZip, sums map[module.Version]string) error {
	for _, z := range zips {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		got, err := dirhash.HashZip(z.Zip, dirhash.Hash1)
		if err == nil && got != sums[z.Version] {
			err = fmt.Errorf("%s has %s, go.sum %s", z.Zip, got, sums[z.Version])
		}
		if err != nil {
			return checksumError(z.String(), err)
		}
	}
	return nil
}

// readPins lists the modules that the series' go.mod requires. It may replace a staging module
// that is not available at the release's version by another version of the same module.
func readPins(s series.Series) ([]module.Version, error) {
	f := s.Mod
	path := f.Syntax.Name
	var pins []module.Version
	for _, r := range f.Require {
		if s.IsTekton() && r.Mod.Path != s.Module() {
			return nil, fmt.Errorf("%s requires %s: the release of Tekton is the module %s alone, delete the line", path, r.Mod, s.Module())
		}
		if r.Mod.Path != s.Module() && r.Mod.Version != s.Staging() {
			return nil, fmt.Errorf("%s requires %s, but the staging modules of %s are at %s: correct it", path, r.Mod, s.Release, s.Staging())
		}
		pins = append(pins, r.Mod)
	}
	for _, r := range f.Replace {
		at := slices.Index(pins, r.Old)
		if at < 0 || r.Old.Path == kubernetes || r.New.Path != r.Old.Path {
			return nil, fmt.Errorf("%s replaces %s by %s: only a staging module can be replaced, at the version that is required and by another version of itself", path, r.Old, r.New)
		}
		pins[at] = r.New
	}
	return pins, nil
}

// pinFiles reads the go.mod and go.sum that pin the release of s.
func pinFiles(s series.Series) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(s.Pins, name))
		if err != nil {
			return nil, fmt.Errorf("reading the pins of series %s: %w", s.Name, err)
		}
		files[name] = data
	}
	return files, nil
}

// readSums reads the checksums of module content from a go.sum.
func readSums(goSum []byte) map[module.Version]string {
	sums := map[module.Version]string{}
	for line := range strings.Lines(string(goSum)) {
		if f := strings.Fields(line); len(f) == 3 {
			sums[module.Version{Path: f[0], Version: f[1]}] = f[2]
		}
	}
	return sums
}

// notFound matches the errors of proxies and version control systems for a missing version.
var notFound = regexp.MustCompile(`(?i)404|410|not found|no matching versions|unknown revision|file does not exist|no such file`)

func downloadError(m module.Version, reason string) error {
	next := "see that the Go module proxy can be reached (`go env GOPROXY`), or fill the module cache on a machine where it can"
	if notFound.MatchString(reason) && !strings.Contains(reason, "no such host") {
		next = "there may be no such release: correct the versions in the series' go.mod"
	}
	return fmt.Errorf("cannot download %s: %s; %s", m, strings.TrimSpace(reason), next)
}

// mismatch finds the module in go's report of a wrong checksum.
var mismatch = regexp.MustCompile(`verifying (\S+?)(?:/go\.mod)?: checksum mismatch`)

// explainDownload turns a checksum error of go into one that names the module.
func explainDownload(err error) error {
	var failed *run.Error
	if errors.As(err, &failed) {
		if m := mismatch.FindStringSubmatch(failed.Tail); m != nil {
			return checksumError(m[1], err)
		}
	}
	return fmt.Errorf("cannot download the release: %w", err)
}

func checksumError(m string, detail error) error {
	return fmt.Errorf("checksum mismatch: module %s is not the one that the series' go.sum pins: do not use it; delete it with `go clean -modcache` to download it again, and if that does not help find out who changed go.sum or the module: %w", m, detail)
}
