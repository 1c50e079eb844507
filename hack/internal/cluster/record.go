package cluster

import (
	"archive/tar"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/gates"
)

// recordPath is where a control-plane node keeps the record of its cluster.
const recordPath = "/kind/podenv-cluster.json"

// record says what a cluster was made from and what was changed since. A node has it only
// once its cluster has served; nodes without one are what an interrupted run left.
type record struct {
	// Checkout is the absolute path of the repository that the cluster belongs to.
	Checkout string `json:"checkout,omitempty"`
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
	// PreviousContext was the current one in that file before.
	PreviousContext string  `json:"previousContext,omitempty"`
	Changes         Changes `json:"changes,omitempty"`
}

// Changes are what was changed on nodes since the cluster was made, by the name of the
// node.
type Changes map[string]NodeChanges

// NodeChanges are what was changed on one node.
type NodeChanges struct {
	Cordoned   bool                       `json:"cordoned,omitempty"`
	Components map[string]ComponentChange `json:"components,omitempty"`
}

// ComponentChange is what is known of a component that was changed. The files of the
// original are kept on the node.
type ComponentChange struct {
	// Original is what ran before the first change.
	Original State `json:"original"`
	// Gates are those asked for. A build that does not know some of them runs without;
	// the next one that does gets them again.
	Gates map[string]bool `json:"gates,omitempty"`
}

// State is what a component runs as.
type State struct {
	// SHA256 is that of the executable.
	SHA256 string `json:"sha256"`
	// Version is what the build says it is, such as "v1.33.13"; empty if nobody knows.
	Version string `json:"version,omitempty"`
	// Gates are those that are set, be it to their default.
	Gates map[string]bool `json:"gates,omitempty"`
	// Image is the container's, for the pods of a daemon set.
	Image string `json:"image,omitempty"`
}

// Component returns what is known of a component of a node that was changed.
func (c Changes) Component(node, component string) (ComponentChange, bool) {
	change, ok := c[node].Components[component]
	return change, ok
}

// With returns the changes with another one of a component of a node, or without one if it
// is nil.
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

// Cordon returns the changes with node cordoned or not.
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

// Changes reads what was changed on the nodes: another podenv may have worked on them.
func (c *Cluster) Changes(ctx context.Context) (Changes, error) {
	if c.record = c.docker.readRecord(ctx, c.name); c.record == nil {
		return nil, c.halfMade()
	}
	return c.record.Changes, nil
}

// SaveChanges records what was changed on the nodes.
func (c *Cluster) SaveChanges(ctx context.Context, changes Changes) error {
	c.record.Changes = changes
	return c.save(ctx)
}

func (c *Cluster) halfMade() error {
	return fmt.Errorf("cluster %s is half-made: run `%s`", c.name, c.command("up"))
}

// differs says in which way a cluster made as r says is not the one that want
// describes; empty if it is.
func (r *record) differs(want *record) string {
	switch {
	case r.ImageID != want.ImageID:
		return fmt.Sprintf("its node image is %s, not %s", r.image(), want.image())
	case r.Workers != want.Workers:
		return fmt.Sprintf("it has %d workers, not %d", r.Workers, want.Workers)
	case !maps.Equal(r.Gates, want.Gates):
		return fmt.Sprintf("its gates are %q, not %q", gates.Flag(r.Gates), gates.Flag(want.Gates))
	case r.Verbosity != want.Verbosity:
		return fmt.Sprintf("it logs at verbosity %d, not %d", r.Verbosity, want.Verbosity)
	case want.APIServerPort != 0 && r.APIServerPort != want.APIServerPort:
		return fmt.Sprintf("its API server does not listen on port %d", want.APIServerPort)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Changes)) {
		return fmt.Sprintf("node %s was changed, which `podenv node undo` can take back", name)
	}
	return ""
}

// image names the node image so that two with the same reference differ.
func (r *record) image() string {
	id := strings.TrimPrefix(r.ImageID, "sha256:")
	return fmt.Sprintf("%s (%.12s)", r.NodeImage, id)
}

// recordFile is the copy of the record below _output.
func recordFile(dir string) string { return filepath.Join(dir, "cluster.json") }

// save writes the record under _output, for when the node is gone, and onto the
// node, for when _output is gone.
func (c *Cluster) save(ctx context.Context) error {
	data, err := json.MarshalIndent(c.record, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	if err := renameio.WriteFile(recordFile(c.dir), append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("recording cluster %s: %w", c.name, err)
	}
	return c.docker(ctx, "cp", recordFile(c.dir), controlPlane(c.name)+":"+recordPath).Run()
}

// readRecord reads the record from the control-plane node of the cluster called
// name, which may be stopped. It is nil if none can be read.
func (d docker) readRecord(ctx context.Context, name string) *record {
	archive, err := d(ctx, "cp", controlPlane(name)+":"+recordPath, "-").Output()
	if err != nil {
		return nil
	}
	files := tar.NewReader(strings.NewReader(archive))
	if _, err := files.Next(); err != nil {
		return nil
	}
	return decodeRecord(files)
}

// readRecordFile reads the record under _output; nil if none can be read.
func readRecordFile(dir string) *record {
	f, err := os.Open(recordFile(dir))
	if err != nil {
		return nil
	}
	defer f.Close()
	return decodeRecord(f)
}

// decodeRecord reads a record; nil if it is none of a cluster.
func decodeRecord(r io.Reader) *record {
	out := new(record)
	if json.NewDecoder(r).Decode(out) != nil || out.ImageID == "" {
		return nil
	}
	return out
}
