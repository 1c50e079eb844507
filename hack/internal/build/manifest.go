package build

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
)

// manifest lists the binaries of a build by component. A file that it does not list, or
// that is not as listed, counts as absent.
type manifest map[string]binary

// binary is one finished executable.
type binary struct {
	Key      string    `json:"key"`  // digest of all that it was made from
	Size     int64     `json:"size"` // bytes
	Modified time.Time `json:"modified"`
}

func manifestPath(dir string) string { return filepath.Join(dir, "manifest.json") }

// readManifest reads the manifest of the build in dir. One that is missing or broken is
// an empty one: then everything is made again.
func readManifest(dir string) manifest {
	m := manifest{}
	if data, err := os.ReadFile(manifestPath(dir)); err != nil || json.Unmarshal(data, &m) != nil {
		return manifest{}
	}
	return m
}

// add lists components of r, made from what key stands for, and writes the manifest.
func (m manifest) add(r *Result, key string, components []string) error {
	for _, c := range components {
		info, err := os.Stat(r.Binaries[c])
		if err != nil {
			return err
		}
		m[c] = binary{Key: key, Size: info.Size(), Modified: info.ModTime().UTC()}
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(manifestPath(r.Dir), append(data, '\n'), 0o644)
}

// isUpToDate reports whether file is b, made from what key stands for. It goes by size and
// time: to read 500 MB would cost more than all the rest.
func (b binary) isUpToDate(file, key string) bool {
	info, err := os.Stat(file)
	return err == nil && b.Key == key && info.Size() == b.Size && info.ModTime().Equal(b.Modified)
}

// removeDamaged removes file if it is not as long as b. The go command looks only at the
// build ID in it, and would not link it again; it also sets the time of what is up to date,
// so that the time alone says little.
func (b binary) removeDamaged(file string) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil || info.Size() == b.Size:
		return err
	}
	return os.Remove(file)
}
