package cluster

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/layout"
)

// recordPath is where a control-plane node keeps the record of its cluster.
const recordPath = "/kind/podenv-cluster.json"

// record says what a cluster was made from. A node has it only once its cluster
// has served; nodes without one are what an interrupted run left.
type record struct {
	// NodeImage is the reference that was asked for, ImageID what it stood for.
	NodeImage string          `json:"nodeImage"`
	ImageID   string          `json:"imageID"`
	Workers   int             `json:"workers"`
	Gates     map[string]bool `json:"gates,omitempty"`
	Verbosity int             `json:"verbosity,omitempty"`
	// APIServerPort is 0 for one that nobody asked for.
	APIServerPort int `json:"apiServerPort,omitempty"`
	// Kubeconfig is the absolute path of the file that has the cluster's context.
	Kubeconfig string `json:"kubeconfig"`
	// Pushed has the components whose running build is not the node image's.
	Pushed map[string]pushed `json:"pushed,omitempty"`
	// Nodes has the nodes that node operations have changed.
	Nodes map[string]nodeRecord `json:"nodes,omitempty"`
}

// pushed identifies builds by the SHA-256 of their executables.
type pushed struct {
	Original string `json:"original"` // the node image's
	Current  string `json:"current"`  // what runs now
}

// differs says in which way a cluster made as r says is not the one that want
// describes, or is empty.
func (r *record) differs(want *record) string {
	switch {
	case r.ImageID != want.ImageID:
		return fmt.Sprintf("its node image is %s, not %s", r.image(), want.image())
	case r.Workers != want.Workers:
		return fmt.Sprintf("it has %d workers, not %d", r.Workers, want.Workers)
	case !maps.Equal(r.Gates, want.Gates):
		return fmt.Sprintf("its gates are %q, not %q", gateFlag(r.Gates), gateFlag(want.Gates))
	case r.Verbosity != want.Verbosity:
		return fmt.Sprintf("it logs at verbosity %d, not %d", r.Verbosity, want.Verbosity)
	case want.APIServerPort != 0 && r.APIServerPort != want.APIServerPort:
		return fmt.Sprintf("its API server does not listen on port %d", want.APIServerPort)
	}
	for component := range r.Pushed {
		return fmt.Sprintf("another %s was pushed to it", component)
	}
	for name := range r.Nodes {
		return fmt.Sprintf("`podenv node` has changed node %s", name)
	}
	return ""
}

// image names the node image so that two with the same reference differ.
func (r *record) image() string {
	id := strings.TrimPrefix(r.ImageID, "sha256:")
	return fmt.Sprintf("%s (%.12s)", r.NodeImage, id)
}

// push notes that component now runs current, and original did before.
func (r *record) push(component, original, current string) {
	if r.Pushed == nil {
		r.Pushed = make(map[string]pushed)
	}
	if before, ok := r.Pushed[component]; ok {
		original = before.Original
	}
	if original == current {
		delete(r.Pushed, component)
		return
	}
	r.Pushed[component] = pushed{Original: original, Current: current}
}

// dir is where the files of the cluster called name are.
func dir(l layout.Layout, name string) string {
	return filepath.Join(l.Output(), "clusters", name)
}

// save writes the record under _output, for when the node is gone, and onto the
// node, for when _output is gone.
func (c *Cluster) save(ctx context.Context) error {
	data, err := json.MarshalIndent(c.record, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(c.dir, "cluster.json")
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	if err := renameio.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("recording cluster %s: %w", c.name, err)
	}
	return c.docker(ctx, "cp", path, controlPlane(c.name)+":"+recordPath).Run()
}

// readRecord reads the record off the control-plane node of the cluster called
// name, which may be stopped. It is nil where there is none that can be read.
func (d docker) readRecord(ctx context.Context, name string) *record {
	archive, err := d(ctx, "cp", controlPlane(name)+":"+recordPath, "-").Output()
	if err != nil {
		return nil
	}
	files := tar.NewReader(strings.NewReader(archive))
	if _, err := files.Next(); err != nil {
		return nil
	}
	r, err := decodeRecord(files)
	if err != nil {
		return nil
	}
	return r
}

// readSaved reads the record under _output; nil where there is none.
func readSaved(dir string) *record {
	f, err := os.Open(filepath.Join(dir, "cluster.json"))
	if err != nil {
		return nil
	}
	defer f.Close()
	r, err := decodeRecord(f)
	if err != nil {
		return nil
	}
	return r
}

func decodeRecord(r io.Reader) (*record, error) {
	out := new(record)
	if err := json.NewDecoder(r).Decode(out); err != nil {
		return nil, err
	}
	if out.ImageID == "" {
		return nil, errors.New("not the record of a cluster")
	}
	return out, nil
}
