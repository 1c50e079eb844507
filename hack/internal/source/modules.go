package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"

	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
)

// kubernetes is the module of a release; its staging modules are modules of their own.
const kubernetes = "k8s.io/kubernetes"

// moduleZip is a module of the release in the Go module cache, its content checked.
type moduleZip struct {
	module.Version
	zip   string // path of the archive
	info  string // path of the JSON that has the version's time
	goMod string // path of its go.mod

	sum, goModSum string // as go.sum has them
}

// downloadModules gets the modules that the series pins into the Go module cache, and
// checks each against the series' go.sum.
func downloadModules(ctx context.Context, s series.Series, scratch string) ([]moduleZip, error) {
	pins, err := readPins(s)
	if err != nil {
		return nil, err
	}
	sums, err := readSums(s)
	if err != nil {
		return nil, err
	}
	for _, m := range pins {
		if sums[m] == "" {
			return nil, fmt.Errorf("%s/go.sum has no checksum of %s: add it with `cd %s && GOFLAGS=-mod=mod go mod download %s`", s.Dir, m, s.Dir, m)
		}
	}
	if err := copyPins(s, scratch); err != nil {
		return nil, err
	}
	zips, err := download(ctx, scratch, pins)
	if err != nil {
		return nil, err
	}
	return zips, checkZips(ctx, zips, sums)
}

// download gets modules into the Go module cache, as the module in dir sees them.
func download(ctx context.Context, dir string, modules []module.Version) ([]moduleZip, error) {
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
	switch {
	case err != nil:
		return nil, err
	case runErr != nil:
		return nil, explainDownload(runErr)
	}
	return zips, nil
}

// readDownloads reads what `go mod download -json` prints.
func readDownloads(out string) ([]moduleZip, error) {
	var zips []moduleZip
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var m struct{ Path, Version, Zip, Info, GoMod, Sum, GoModSum, Error string }
		err := d.Decode(&m)
		if errors.Is(err, io.EOF) {
			return zips, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the output of go mod download: %w", err)
		}
		version := module.Version{Path: m.Path, Version: m.Version}
		if m.Error != "" {
			return nil, downloadError(version, m.Error)
		}
		zips = append(zips, moduleZip{Version: version, zip: m.Zip, info: m.Info, goMod: m.GoMod, sum: m.Sum, goModSum: m.GoModSum})
	}
}

// checkZips hashes the archives themselves: go trusts the hash that it noted beside an
// archive when it downloaded it. A release takes seconds, so ctx ends it between files.
func checkZips(ctx context.Context, zips []moduleZip, sums map[module.Version]string) error {
	hash := func(files []string, open func(string) (io.ReadCloser, error)) (string, error) {
		return dirhash.Hash1(files, func(file string) (io.ReadCloser, error) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return open(file)
		})
	}
	for _, z := range zips {
		got, err := dirhash.HashZip(z.zip, hash)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return checksumError(z.String(), err)
		}
		if got != sums[z.Version] {
			return checksumError(z.String(), fmt.Errorf("%s has %s, go.sum %s", z.zip, got, sums[z.Version]))
		}
	}
	return nil
}
