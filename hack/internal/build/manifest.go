package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
)

// manifest says what a build's folder holds. A file that it does not list, or that is
// not as listed, counts as absent.
type manifest struct {
	Binaries map[string]artifact `json:"binaries"` // by component
	Images   map[string]artifact `json:"images"`   // by component
}

// artifact is one finished file.
type artifact struct {
	Key      string    `json:"key"` // hash of all that the file was made from
	Version  string    `json:"version"`
	Size     int64     `json:"size"` // bytes
	SHA256   string    `json:"sha256"`
	Modified time.Time `json:"modified"`
}

func manifestPath(dir string) string { return filepath.Join(dir, "manifest.json") }

// readManifest reads the manifest of the build in dir. One that is missing or broken is
// an empty one: then everything is made again.
func readManifest(dir string) manifest {
	m := manifest{}
	if data, err := os.ReadFile(manifestPath(dir)); err == nil && json.Unmarshal(data, &m) != nil {
		m = manifest{}
	}
	if m.Binaries == nil {
		m.Binaries = map[string]artifact{}
	}
	if m.Images == nil {
		m.Images = map[string]artifact{}
	}
	return m
}

func (m manifest) write(dir string) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(manifestPath(dir), append(data, '\n'), 0o644)
}

// holds says whether file is the artifact a, made from what key stands for.
func (a artifact) holds(file, key string) bool {
	info, err := os.Stat(file)
	return err == nil && a.Key == key && a.is(info)
}

// is goes by size and time: to read 500 MB would cost more than all the rest.
func (a artifact) is(info fs.FileInfo) bool {
	return info.Size() == a.Size && info.ModTime().Equal(a.Modified)
}

// newArtifact describes the finished file.
func newArtifact(file, key, version string) (artifact, error) {
	f, err := os.Open(file)
	if err != nil {
		return artifact{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return artifact{}, err
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return artifact{}, err
	}
	return artifact{
		Key: key, Version: version, Size: info.Size(),
		SHA256: hex.EncodeToString(h.Sum(nil)), Modified: info.ModTime().UTC(),
	}, nil
}

// keyOf hashes parts, each told apart from the next.
func keyOf(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		inner := sha256.Sum256([]byte(part))
		h.Write(inner[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}
