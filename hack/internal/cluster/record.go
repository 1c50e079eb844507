package cluster

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/jsonout"
)

// recordPath is the path of the record on a control-plane node.
const recordPath = "/kind/podenv-cluster.json"

// record has the configuration of a cluster, and what was changed since. A node gets it when
// its cluster serves for the first time: nodes without it are from an interrupted run.
type record struct {
	// Checkout is the absolute path of the repository that the cluster belongs to.
	Checkout string `json:"checkout,omitempty"`
	// NodeImage is the requested reference, ImageID the image that it referred to.
	NodeImage string `json:"nodeImage"`
	ImageID   string `json:"imageID"`
	Workers   int    `json:"workers"`
	// ControlPlanes is 0 for one.
	ControlPlanes int             `json:"controlPlanes,omitempty"`
	Gates         map[string]bool `json:"gates,omitempty"`
	Verbosity     int             `json:"verbosity,omitempty"`
	// APIServerPort is 0 if no port was requested.
	APIServerPort int `json:"apiServerPort,omitempty"`
	// KindConfig and VerifyKey are digests of the user's configuration of kind, and of the key
	// that images need to be signed with and askVerifiers; empty without.
	KindConfig string `json:"kindConfig,omitempty"`
	VerifyKey  string `json:"verifyKey,omitempty"`
	// PreviousContexts are the contexts that were current before the cluster's, by the absolute
	// path of the kubeconfig. Every kubeconfig that was given the cluster's context is here.
	PreviousContexts map[string]string `json:"previousContexts,omitempty"`
	Changes          Changes           `json:"changes,omitempty"`
}

// Changes are the changes to nodes since the cluster was created, by node name.
type Changes map[string]NodeChanges

// NodeChanges are the changes to one node.
type NodeChanges struct {
	Cordoned   bool                       `json:"cordoned,omitempty"`
	Components map[string]ComponentChange `json:"components,omitempty"`
}

// ComponentChange describes a changed component. The original files are kept on the node.
type ComponentChange struct {
	// Original is what ran before the first change.
	Original State `json:"original"`
	// Gates are the requested gates. A build that does not know some of them runs without
	// them; the next build that knows them gets them again.
	Gates map[string]bool `json:"gates,omitempty"`
}

// State is the state of a component.
type State struct {
	// SHA256 is the checksum of the executable.
	SHA256 string `json:"sha256"`
	// Version is what the build reports, such as "v1.33.13"; empty if unknown.
	Version string `json:"version,omitempty"`
	// Gates are the gates that are set, even if to their default.
	Gates map[string]bool `json:"gates,omitempty"`
	// Image is the container's image, for the pods of a daemon set.
	Image string `json:"image,omitempty"`
}

// With returns a copy in which change replaces the change of a component of a node, or removes
// it if change is nil.
func (c Changes) With(node, component string, change *ComponentChange) Changes {
	n := c[node]
	components := make(map[string]ComponentChange)
	maps.Copy(components, n.Components)
	if change == nil {
		delete(components, component)
	} else {
		components[component] = *change
	}
	n.Components = components
	return c.with(node, n)
}

// Cordon returns a copy with node cordoned or not.
func (c Changes) Cordon(node string, cordoned bool) Changes {
	n := c[node]
	n.Cordoned = cordoned
	return c.with(node, n)
}

func (c Changes) with(node string, n NodeChanges) Changes {
	out := make(Changes)
	maps.Copy(out, c)
	out[node] = n
	if !n.Cordoned && len(n.Components) == 0 {
		delete(out, node)
	}
	return out
}

// Changes reads the changes from the node: another podenv process may have made some.
func (c *Cluster) Changes(ctx context.Context) (Changes, error) {
	if c.record = c.docker.readRecord(ctx, c.name); c.record == nil {
		return nil, c.halfMade()
	}
	return c.record.Changes, nil
}

// SaveChanges saves the changes in the record.
func (c *Cluster) SaveChanges(ctx context.Context, changes Changes) error {
	c.record.Changes = changes
	return c.save(ctx)
}

func (c *Cluster) halfMade() error {
	return fmt.Errorf("cluster %s is half-made: run `%s`", c.name, c.command("up"))
}

// controlPlanes is their number; records of one have none.
func (r *record) controlPlanes() int { return max(1, r.ControlPlanes) }

// difference describes how a cluster with the record r differs from want; "" if it does not.
func (r *record) difference(want *record) string {
	switch {
	case r.ImageID != want.ImageID:
		return fmt.Sprintf("its node image is %s, not %s", r.image(), want.image())
	case r.controlPlanes() != want.controlPlanes():
		return fmt.Sprintf("the number of its control planes is %d, not %d", r.controlPlanes(), want.controlPlanes())
	case r.Workers != want.Workers:
		return fmt.Sprintf("it has %d workers, not %d", r.Workers, want.Workers)
	case !maps.Equal(r.Gates, want.Gates):
		return fmt.Sprintf("its gates are %q, not %q", featuregates.Flag(r.Gates), featuregates.Flag(want.Gates))
	case r.Verbosity != want.Verbosity:
		return fmt.Sprintf("it logs at verbosity %d, not %d", r.Verbosity, want.Verbosity)
	case r.KindConfig != want.KindConfig:
		return "it was made with another --kind-config, or without"
	case r.VerifyKey != want.VerifyKey:
		return "it was made with another --verify-images, or without"
	case want.APIServerPort != 0 && r.APIServerPort != want.APIServerPort:
		return fmt.Sprintf("its API server does not listen on port %d", want.APIServerPort)
	}
	if changed := slices.Sorted(maps.Keys(r.Changes)); len(changed) > 0 {
		return fmt.Sprintf("node %s was changed, which `podenv node undo` can take back", changed[0])
	}
	return ""
}

// image names the node image. The name also tells images with the same reference apart.
func (r *record) image() string {
	id := strings.TrimPrefix(r.ImageID, "sha256:")
	return fmt.Sprintf("%s (%.12s)", r.NodeImage, id)
}

// recordFile returns the path of the record's copy in _output.
func recordFile(dir string) string { return filepath.Join(dir, "cluster.json") }

// save writes the record to _output and to the node, in case one of them is lost.
func (c *Cluster) save(ctx context.Context) error {
	if err := jsonout.Save(recordFile(c.dir), c.record); err != nil {
		return fmt.Errorf("recording cluster %s: %w", c.name, err)
	}
	return c.docker(ctx, "cp", recordFile(c.dir), controlPlane(c.name)+":"+recordPath).Run()
}

// readRecord reads the record from the control-plane node of the cluster called name, which
// may be stopped. It returns nil if there is no readable record.
func (d docker) readRecord(ctx context.Context, name string) *record {
	archive, _ := d(ctx, "cp", controlPlane(name)+":"+recordPath, "-").Output()
	files := tar.NewReader(strings.NewReader(archive))
	if _, err := files.Next(); err != nil {
		return nil
	}
	return decodeRecord(files)
}

// readRecordFile reads the record's copy in _output. It returns nil if it cannot.
func readRecordFile(dir string) *record {
	data, _ := os.ReadFile(recordFile(dir))
	return decodeRecord(bytes.NewReader(data))
}

// decodeRecord reads a record. It returns nil if r has no record of a cluster.
func decodeRecord(r io.Reader) *record {
	out := new(record)
	if json.NewDecoder(r).Decode(out) != nil || out.ImageID == "" {
		return nil
	}
	return out
}
