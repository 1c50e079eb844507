package cluster

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/testutil"
)

const kindHead = "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n"

// readKind returns the configuration of a cluster that is merged with text, after kindHead.
func readKind(t *testing.T, text string) (*Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kind.yaml")
	testutil.WriteFile(t, file, kindHead+text)
	c := &Config{Name: "podenv", NodeImage: "podenv/node:1", Workers: 1, Gates: map[string]bool{"EnvFiles": true, "PodPreset": true}}
	return c, c.ReadKindConfig(file, map[string]bool{"PodPreset": true})
}

func TestTheUsersConfigurationOfKindIsMerged(t *testing.T) {
	_, l, e := newFakeDocker(t)
	c, err := readKind(t, `
nodes:
- role: control-plane
  extraPortMappings: [{containerPort: 80, hostPort: 8080}]
- role: worker
  extraMounts: [{hostPath: /tmp, containerPath: /data}]
- role: worker
networking: {ipFamily: dual, podSubnet: "10.0.0.0/16", apiServerPort: 6443}
featureGates: {PodLevelResources: true, EnvFiles: false}
runtimeConfig: {api/alpha: "true"}
kubeadmConfigPatches: ["kind: KubeletConfiguration"]
`)
	if err != nil {
		t.Fatal(err)
	}
	k := c.kind()
	if k.Name != "podenv" || c.Workers != 2 || len(k.Nodes) != 3 {
		t.Errorf("name %s, %d workers, %d nodes", k.Name, c.Workers, len(k.Nodes))
	}
	for i, n := range k.Nodes {
		if n.Image != "podenv/node:1" || !slices.ContainsFunc(n.ExtraMounts, func(m v1alpha4.Mount) bool { return m.ContainerPath == marker }) {
			t.Errorf("node %d: %+v", i, n)
		}
	}
	if k.Nodes[0].ExtraPortMappings[0].HostPort != 8080 || k.Nodes[1].ExtraMounts[0].ContainerPath != "/data" {
		t.Errorf("nodes = %+v", k.Nodes)
	}
	if n := k.Networking; n.IPFamily != "dual" || n.PodSubnet != "10.0.0.0/16" || n.APIServerPort != 6443 || n.APIServerAddress != apiServerAddress {
		t.Errorf("networking = %+v", n)
	}
	if got := fmt.Sprint(k.FeatureGates, k.RuntimeConfig); got != "map[EnvFiles:false PodLevelResources:true PodPreset:true] map[api/alpha:true settings.k8s.io/v1alpha1:true]" {
		t.Errorf("gates and APIs: %s", got)
	}
	// What is checked on the running cluster is what it was asked for.
	c.NodeImage = podenvConfig().NodeImage
	r, err := open(l, e, "podenv").newRecord(t.Context(), c)
	if err != nil || !maps.Equal(r.Gates, k.FeatureGates) {
		t.Errorf("the record has the gates %v, %v", r, err)
	}
	if last := len(k.KubeadmConfigPatches) - 1; last < 2 || k.KubeadmConfigPatches[last] != "kind: KubeletConfiguration" || !strings.Contains(k.KubeadmConfigPatches[0], "leader-elect") {
		t.Errorf("patches = %q", k.KubeadmConfigPatches)
	}
	if again := c.kind(); len(again.Nodes[0].ExtraMounts) != 1 || fmt.Sprint(c.Gates) != "map[EnvFiles:true PodPreset:true]" {
		t.Errorf("merging changes what it merges: %+v, %v", again.Nodes[0], c.Gates)
	}
}

func TestAConfigurationWithoutNodesGetsPodenvsOwn(t *testing.T) {
	c, err := readKind(t, "networking: {apiServerAddress: 0.0.0.0, apiServerPort: 6443}")
	if err != nil {
		t.Fatal(err)
	}
	c.APIServerPort = 7443 // of the command line
	if k := c.kind(); len(k.Nodes) != 2 || k.Networking.APIServerAddress != "0.0.0.0" || k.Networking.APIServerPort != 7443 {
		t.Errorf("kind = %+v", k)
	}
}

// An API server does not start with an admission plugin whose gate is off.
func TestAGateThatTheUserTurnsOffHasNoSwitches(t *testing.T) {
	c, err := readKind(t, "featureGates: {PodPreset: false}\nkubeadmConfigPatches: ['enable-admission-plugins: NodeRestriction']")
	if err != nil {
		t.Fatal(err)
	}
	if k := c.kind(); strings.Contains(strings.Join(k.KubeadmConfigPatches, ""), "PodPreset") || len(k.RuntimeConfig) > 0 {
		t.Errorf("the switches are on: %q, %v", k.KubeadmConfigPatches, k.RuntimeConfig)
	}
}

func TestAConfigurationOfKindThatCannotBeMerged(t *testing.T) {
	for text, want := range map[string]string{
		"nodes: [{role: control-plane}, {role: control-plane}]": "2 control planes: ask for 1, 3 or 5",
		"nodes: [{role: worker}]":                               "0 control planes",
		"nodes: [{role: control-plane, image: x}]":              "leave it out, or name it with --image",
		"name: other": "its name is other, not podenv",
		"nodez: []":   "is no configuration of kind",
		"kubeadmConfigPatches: ['enable-admission-plugins: NodeRestriction']":                                                                                                "add PodPreset to them",
		"nodes: [{role: control-plane, kubeadmConfigPatches: ['enable-admission-plugins: NodeRestriction']}]\nkubeadmConfigPatches: ['enable-admission-plugins: PodPreset']": "add PodPreset to them",
		"kubeadmConfigPatchesJSON6902: [{group: kubeadm.k8s.io, version: v1beta4, kind: ClusterConfiguration, patch: 'enable-admission-plugins'}]":                           "add PodPreset to them",
	} {
		_, err := readKind(t, text)
		testutil.CheckError(t, err, want)
	}
	file := filepath.Join(t.TempDir(), "kind.yaml")
	testutil.CheckError(t, new(Config).ReadKindConfig(file, nil), "no such file")
	testutil.WriteFile(t, file, "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha3\n")
	testutil.CheckError(t, new(Config).ReadKindConfig(file, nil), "want kind: Cluster and apiVersion: kind.x-k8s.io/v1alpha4")
	_, err := readKind(t, "kubeadmConfigPatches: ['enable-admission-plugins: NodeRestriction,PodPreset']")
	testutil.CheckError(t, err, "")
}

func TestTheImageVerifierIsOnEveryNode(t *testing.T) {
	f, l, e := newFakeDocker(t)
	program, key := filepath.Join(t.TempDir(), "program"), filepath.Join(t.TempDir(), "key")
	testutil.WriteFile(t, program, "program")
	testutil.WriteFile(t, key, "public key")
	nodes := []string{"podenv-control-plane", "podenv-worker"}
	for _, node := range nodes {
		f.add(t, fakeNode("podenv", node, strings.TrimPrefix(node, "podenv-"), true))
	}
	c := open(l, e, "podenv")
	if err := c.installVerifier(t.Context(), &Verifier{program, key}, nil); err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		got, err := f.container(node)
		if err != nil || got.Files["/opt/containerd/image-verifier/bin/podenv 755"] != "program" || got.Files["/opt/containerd/image-verifier/key.pub 644"] != "public key" {
			t.Errorf("%s has %v, %v", node, got.Files, err)
		}
	}
	if err := c.installVerifier(t.Context(), &Verifier{program, key + ".none"}, nil); err == nil {
		t.Error("no key, and no error")
	}
}

// containerd asks the verifier only where its transfer service pulls, and pulls in another way with any of these.
func TestContainerdAsksTheVerifier(t *testing.T) {
	images := []string{"plugins", "io.containerd.cri.v1.images"}
	node, err := toml.LoadFile("../nodeimage/containerd.toml.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	settings := node.GetPath(images).(*toml.Tree).ToMap()
	verified := podenvConfig()
	verified.Verifier = &Verifier{}
	for _, patch := range verified.kind().ContainerdConfigPatches {
		tree, err := toml.Load(patch)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(settings, tree.GetPath(images).(*toml.Tree).ToMap())
		// Without any for the node's snapshotter it refuses to pull. kind sets native on ZFS, where overlayfs may be missing.
		var unpacks []any
		configs, _ := tree.GetPath([]string{"plugins", "io.containerd.transfer.v1.local", "unpack_config"}).([]*toml.Tree)
		for _, c := range configs {
			unpacks = append(unpacks, c.Get("snapshotter"), c.Get("optional"))
		}
		if !slices.Equal(unpacks, []any{"overlayfs", true, "native", nil}) {
			t.Errorf("it unpacks for %v", unpacks)
		}
	}
	for _, key := range []string{"discard_unpacked_layers", "disable_snapshot_annotations", "max_concurrent_downloads", "image_pull_with_sync_fs", "use_local_image_pull"} {
		if value, set := settings[key]; set && (key != "discard_unpacked_layers" || value != false) {
			t.Errorf("%s is %v", key, value)
		}
	}
	if registry, ok := settings["registry"].(map[string]any); !ok || len(registry) != 1 || registry["config_path"] != "/etc/containerd/certs.d" {
		t.Errorf("registry is %v", settings["registry"])
	}
	plain := podenvConfig()
	if patches := plain.kind().ContainerdConfigPatches; patches != nil {
		t.Errorf("without a verifier: %q", patches)
	}
	c, err := readKind(t, `containerdConfigPatches: ["version = 4"]`)
	if err != nil {
		t.Fatal(err)
	}
	c.Verifier = verified.Verifier
	if patches := c.kind().ContainerdConfigPatches; !slices.Equal(patches, []string{"version = 4", askVerifiers}) {
		t.Errorf("the user's configuration: %q", patches)
	}
}

func TestTheRecordTellsConfigurationsAndKeysApart(t *testing.T) {
	_, l, e := newFakeDocker(t)
	c := open(l, e, "podenv")
	key := filepath.Join(t.TempDir(), "key")
	testutil.WriteFile(t, key, "public key")
	records := map[string]*record{}
	for name, change := range map[string]func(*Config){
		"none":      func(*Config) {},
		"a key":     func(cfg *Config) { cfg.Verifier = &Verifier{Key: key} },
		"one node":  func(cfg *Config) { cfg.Kind = &v1alpha4.Cluster{Nodes: make([]v1alpha4.Node, 1)} },
		"two nodes": func(cfg *Config) { cfg.Kind = &v1alpha4.Cluster{Nodes: make([]v1alpha4.Node, 2)} },
	} {
		cfg := podenvConfig()
		change(&cfg)
		r, err := c.newRecord(t.Context(), &cfg)
		if err != nil {
			t.Fatal(err)
		}
		for other, o := range records {
			if r.difference(o) == "" {
				t.Errorf("%s is as %s", name, other)
			}
		}
		if again, err := c.newRecord(t.Context(), &cfg); err != nil || r.difference(again) != "" {
			t.Errorf("%s is not as itself: %v", name, err)
		}
		records[name] = r
	}
	// A cluster whose containerd was not told to ask has the digest of the key alone.
	silent := *records["a key"]
	var err error
	if silent.VerifyKey, err = digest.File(key); err != nil {
		t.Fatal(err)
	}
	if silent.difference(records["a key"]) == "" {
		t.Error("a cluster that asks no verifier is as one that does")
	}
}
