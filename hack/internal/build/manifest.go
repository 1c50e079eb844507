package build

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
)

// manifest lists the binaries of a build by component. A file that it does not list, or that
// differs from the entry, counts as missing.
type manifest map[string]binary

// binary is one finished executable.
type binary struct {
	Key      string    `json:"key"`  // digest of all inputs
	Size     int64     `json:"size"` // bytes
	Modified time.Time `json:"modified"`
}

func manifestPath(dir string) string { return filepath.Join(dir, "manifest.json") }

// readManifest reads the manifest of the build in dir. A missing or broken manifest counts as
// empty: then everything is built again.
func readManifest(dir string) manifest {
	m := manifest{}
	if data, err := os.ReadFile(manifestPath(dir)); err != nil || json.Unmarshal(data, &m) != nil {
		return manifest{}
	}
	return m
}

// add adds components of r, built from the inputs with digest key, and writes the manifest.
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

// isUpToDate reports whether file is b, built from the inputs with digest key. It compares size
// and time: reading 500 MB would take longer than everything else.
func (b binary) isUpToDate(file, key string) bool {
	info, err := os.Stat(file)
	return err == nil && b.Key == key && info.Size() == b.Size && info.ModTime().Equal(b.Modified)
}
