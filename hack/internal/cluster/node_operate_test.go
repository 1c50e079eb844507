package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// operated is a worker of a cluster whose kubelet a fake swaps.
type operated struct {
	*operation
	fake *fakeSwap
}

// newOperated returns one that runs the build old with EnvFiles on, and says so.
func newOperated(t *testing.T, fake fakeSwap) *operated {
	t.Helper()
	f, l, e := newFakeDocker(t)
	f.add(t, fakeNode("podenv", "podenv-control-plane", "control-plane", true))
	f.add(t, fakeNode("podenv", "podenv-worker", "worker", true))
	c := open(l, e, "podenv")
	c.record = &record{ImageID: "sha256:1111"}
	if err := c.save(t.Context()); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(apiServer{"/api/v1/nodes/podenv-worker/proxy/metrics": buildInfo + gateOn})
	t.Cleanup(server.Close)
	kubeconfig := fmt.Sprintf(`{clusters: [{name: a, cluster: {server: %q}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}`, server.URL)
	if err := os.WriteFile(c.Kubeconfig(), []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	fake.old, fake.new, fake.runs = "old", "old", "old"
	node := Node{Name: "podenv-worker", Role: "worker"}
	on := map[string]bool{"EnvFiles": true}
	from := state{SHA256: "old", Version: "v1.33.13+podenv.24", Gates: on}
	return &operated{fake: &fake, operation: &operation{
		swap: &swap{Cluster: c, component: "kubelet", nodes: []Node{node}, phase: within(nil)},
		node: node, swapper: &fake,
		from: from, to: from, wanted: on,
		recorded: componentRecord{Original: from, Gates: on},
	}}
}

// toNew has the operation swap to the build new, which knows no gate.
func (o *operated) toNew() {
	o.fake.new = "new"
	o.to = state{SHA256: "new", Version: "v1.32.13"}
	o.binary, o.gates = "file", map[string]bool{}
}

func (o *operated) did() string { return strings.Join(slices.Collect(mapped(o.fake.done)), " ") }

func TestAnOperationOnANodeIsMadeOrTakenBack(t *testing.T) {
	broken := errors.New("it crashes")
	tests := map[string]struct {
		swap      fakeSwap
		plan      func(*operated)
		cancelled bool
		did       string
		says      string
		recorded  bool
	}{
		"a node that is as wanted is left alone": {
			plan: func(*operated) {},
		},
		"a gate that is asked for but unknown is recorded": {
			plan: func(o *operated) { o.wanted = map[string]bool{"EnvFiles": true, "Other": true} },
			did:  "put turn serves-old clean", recorded: true,
		},
		"a component that does not say what it should is restarted": {
			plan: func(o *operated) { o.to.Version = "v1.33.13+podenv.25" },
			did:  "put turn serves-old clean", recorded: true,
		},
		"a swap is made and recorded": {
			plan: (*operated).toNew,
			did:  "put turn serves-new clean", recorded: true,
		},
		"a restart is made and not recorded": {
			plan: func(o *operated) { o.restart = true },
			did:  "put turn serves-old clean",
		},
		"a build that does not serve is taken back": {
			swap: fakeSwap{failAt: "serves new", fail: broken}, plan: (*operated).toNew,
			did: "put turn serves-new back serves-old clean", says: "it crashes",
		},
		"an interrupted swap is taken back": {
			swap: fakeSwap{failAt: "turn", fail: context.Canceled}, plan: (*operated).toNew, cancelled: true,
			did: "put turn back serves-old clean", says: "the old build is back",
		},
		"a build that does not reach the node changes nothing": {
			swap: fakeSwap{failAt: "put", fail: broken}, plan: (*operated).toNew,
			did: "put clean", says: "it crashes",
		},
		"a build that does not come back either stays recorded": {
			swap: fakeSwap{failAt: "serves new", fail: broken, badOld: true}, plan: (*operated).toNew,
			did: "put turn serves-new back", says: "could not be put back", recorded: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.cancelled {
				test.swap.stop = cancel
			}
			o := newOperated(t, test.swap)
			test.plan(o)
			err := o.run(ctx, new(steps))
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want %q", err, test.says)
			}
			if got := o.did(); got != test.did {
				t.Errorf("did %q, want %q", got, test.did)
			}
			saved := o.docker.readRecord(t.Context(), "podenv")
			c, recorded := saved.component("podenv-worker", "kubelet")
			if recorded != test.recorded {
				t.Errorf("recorded: %t, want %t", recorded, test.recorded)
			}
			if recorded && (c.Original.SHA256 != "old" || !maps.Equal(c.Gates, o.wanted)) {
				t.Errorf("recorded %+v", c)
			}
		})
	}
}

func TestUndoForgetsTheComponentOnceTheOriginalServes(t *testing.T) {
	for name, test := range map[string]struct {
		swap     fakeSwap
		recorded bool
	}{
		"the original serves":         {fakeSwap{}, false},
		"the original does not serve": {fakeSwap{failAt: "serves old", fail: errors.New("it crashes")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOperated(t, test.swap)
			o.record.changeComponent("podenv-worker", "kubelet", o.recorded)
			if err := o.save(t.Context()); err != nil {
				t.Fatal(err)
			}
			o.fake.runs = "new"
			o.fake.new, o.fake.old = "old", "new" // what turn and back lead to
			o.original, o.from.SHA256 = true, "new"
			err := o.run(t.Context(), new(steps))
			if (err != nil) != test.recorded {
				t.Errorf("error %v", err)
			}
			if _, recorded := o.docker.readRecord(t.Context(), "podenv").component("podenv-worker", "kubelet"); recorded != test.recorded {
				t.Errorf("recorded: %t, want %t", recorded, test.recorded)
			}
		})
	}
}

func TestOperationsRefuseNodesAndComponentsThatAreNotThere(t *testing.T) {
	f, l, e := newFakeDocker(t)
	f.add(t, fakeNode("podenv", "podenv-control-plane", "control-plane", true))
	f.add(t, fakeNode("podenv", "podenv-worker", "worker", true))
	f.add(t, fakeNode("other", "other-worker", "worker", true))
	c := open(l, e, "podenv")
	tests := map[string]struct{ node, component, says string }{
		"a node of another cluster":           {"other-worker", "kubelet", "choose one of podenv-control-plane, podenv-worker"},
		"an API server on a worker":           {"podenv-worker", "kube-apiserver", "name a control plane"},
		"a component that no operation knows": {"podenv-worker", "kubectl", "choose of kubelet, kube-apiserver"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := c.HasComponent(t.Context(), test.node, test.component); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want one with %q", err, test.says)
			}
		})
	}
	if err := c.HasComponent(t.Context(), "other-worker", "kubelet"); !errors.Is(err, ErrNotOurs) {
		t.Errorf("a node that is not the cluster's: %v", err)
	}
	if err := c.HasComponent(t.Context(), "podenv-control-plane", "kube-apiserver"); err != nil {
		t.Error(err)
	}
}

func TestARecordForgetsNodesThatAreAsTheyWere(t *testing.T) {
	r := &record{}
	back := r.changeComponent("a", "kubelet", componentRecord{Gates: map[string]bool{"EnvFiles": true}})
	if r.differs(&record{}) == "" {
		t.Error("a cluster with a changed node passes for an unchanged one")
	}
	back()
	if r.Nodes != nil {
		t.Errorf("taken back: %v", r.Nodes)
	}
	r.changeComponent("a", "kubelet", componentRecord{})
	r.cordon("a", true)
	r.forgetComponent("a", "kubelet")
	if want := map[string]nodeRecord{"a": {Cordoned: true, Components: map[string]componentRecord{}}}; !cmp.Equal(want, r.Nodes) {
		t.Errorf("a node that is still cordoned: %v", r.Nodes)
	}
	r.cordon("a", false)
	if len(r.Nodes) != 0 {
		t.Errorf("a node that is as it was: %v", r.Nodes)
	}
}

func TestOpenBuildRefusesWhatIsNoBuild(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	foreign := slices.Clone(whole)
	foreign[18], foreign[19] = 0xff, 0x00 // e_machine
	tests := map[string]struct {
		content []byte
		says    string
	}{
		"an empty file":                     {nil, "no executable of Linux"},
		"a script":                          {[]byte("#!/bin/sh\nexit 0\n"), "no executable of Linux"},
		"the beginning of an executable":    {whole[:100], "cut off after 100 bytes"},
		"an executable without its end":     {whole[:len(whole)/2], "cut off after"},
		"an executable for another machine": {foreign, "another machine"},
		"an executable of something else":   {whole, "--version"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubelet")
			if err := os.WriteFile(path, test.content, 0o755); err != nil {
				t.Fatal(err)
			}
			_, err := OpenBuild(t.Context(), "kubelet", path)
			if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "no build of kubelet") {
				t.Errorf("error %v, want one with %q", err, test.says)
			}
		})
	}
	if _, err := OpenBuild(t.Context(), "kubelet", filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "stock:MINOR") {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestWriteStates(t *testing.T) {
	states := []NodeState{
		{Node: "a", Status: "Ready", Component: "kubelet", Version: "v1.32.13", LeftOut: []string{"EnvFiles"}, Changed: true},
		{Node: "b", Status: "Unknown", Component: "kubelet", Problem: "connection\n\trefused"},
	}
	var tsv, table, json strings.Builder
	for write, err := range map[string]error{
		"tsv": WriteTSV(&tsv, states), "table": WriteTable(&table, states), "json": WriteJSON(&json, nil),
	} {
		if err != nil {
			t.Errorf("%s: %v", write, err)
		}
	}
	if want := "a\tReady\tkubelet\tv1.32.13\t\tEnvFiles\tyes\nb\tUnknown\tkubelet\tconnection refused\t\t\tno\n"; tsv.String() != want {
		t.Errorf("TSV %q, want %q", tsv.String(), want)
	}
	if lines := strings.Split(table.String(), "\n"); len(lines) != 4 || !strings.HasPrefix(lines[0], "NODE") {
		t.Errorf("table\n%s", table.String())
	}
	if json.String() != "[]\n" {
		t.Errorf("JSON of nothing: %q", json.String())
	}
}
