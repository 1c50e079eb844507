package nodeimage

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// nodeConfig is what kind's own images say of themselves: systemd learns that it is
// in a container, and the engine how to stop it (systemd's CONTAINER_INTERFACE).
var nodeConfig = v1.Config{
	Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "container=docker"},
	Entrypoint: []string{"/usr/local/bin/entrypoint", "/sbin/init"},
	StopSignal: "SIGRTMIN+3",
}

// layerSum is the hash and the length of a layer.
type layerSum struct {
	hex  string
	size int64
}

// sumLayer reads what write writes, without keeping it.
func sumLayer(write func(io.Writer) error) (layerSum, error) {
	h, n := sha256.New(), new(counter)
	err := write(io.MultiWriter(h, n))
	return layerSum{hex: hex.EncodeToString(h.Sum(nil)), size: int64(*n)}, err
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// writeArchive writes the image ref with one layer to w, as `docker load` reads it.
// The layer stays unpacked: it goes no further than this machine.
func writeArchive(w io.Writer, ref string, sum layerSum, layer func(io.Writer) error) error {
	config, err := json.Marshal(v1.ConfigFile{
		Architecture: runtime.GOARCH, OS: "linux", Created: v1.Time{Time: epoch.UTC()}, Config: nodeConfig,
		RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{{Algorithm: "sha256", Hex: sum.hex}}},
	})
	if err != nil {
		return err
	}
	const layerName, configName = "layer.tar", "config.json"
	manifest, err := json.Marshal(tarball.Manifest{{Config: configName, RepoTags: []string{ref}, Layers: []string{layerName}}})
	if err != nil {
		return err
	}
	tw := tar.NewWriter(w)
	for _, f := range []file{{name: configName, mode: 0o644, data: config}, {name: "manifest.json", mode: 0o644, data: manifest}} {
		if err := f.write(tw); err != nil {
			return err
		}
	}
	hdr := &tar.Header{Typeflag: tar.TypeReg, Name: layerName, Mode: 0o644, Size: sum.size, ModTime: epoch, Format: tar.FormatPAX}
	if err := tw.WriteHeader(hdr); err != nil {
		return err
	}
	if err := layer(tw); err != nil {
		return err
	}
	return tw.Close()
}
