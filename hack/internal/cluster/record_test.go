package cluster

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAClusterDiffersFromWhatIsAskedFor(t *testing.T) {
	want := &record{NodeImage: "podenv/node:1", ImageID: "sha256:1", Workers: 1, Gates: map[string]bool{"EnvFiles": true}}
	tests := map[string]struct {
		change func(*record)
		why    string
	}{
		"the same cluster":                                 {func(*record) {}, ""},
		"another kubeconfig is no other cluster":           {func(r *record) { r.PreviousContexts = map[string]string{"/elsewhere": ""} }, ""},
		"another name of the image is no other image":      {func(r *record) { r.NodeImage = "podenv/node:2" }, ""},
		"a port that nobody asks for is any port":          {func(r *record) { r.APIServerPort = 6443 }, ""},
		"another node image":                               {func(r *record) { r.ImageID = "sha256:2" }, "podenv/node:1 (2), not podenv/node:1 (1)"},
		"another number of workers":                        {func(r *record) { r.Workers = 2 }, "2 workers, not 1"},
		"another configuration of kind":                    {func(r *record) { r.KindConfig = "1" }, "another --kind-config"},
		"another key for images":                           {func(r *record) { r.VerifyKey = "1" }, "another --verify-images"},
		"a gate that is not set":                           {func(r *record) { r.Gates = nil }, `"EnvFiles=true"`},
		"a gate that is off":                               {func(r *record) { r.Gates = map[string]bool{"EnvFiles": false} }, `"EnvFiles=false"`},
		"another verbosity":                                {func(r *record) { r.Verbosity = 4 }, "verbosity 4, not 0"},
		"a node that an operation or a push has changed":   {func(r *record) { r.Changes = r.Changes.With("a", "kubelet", &ComponentChange{}) }, "node a was changed"},
		"a node that a drain has cordoned is changed, too": {func(r *record) { r.Changes = r.Changes.Cordon("a", true) }, "node a was changed"},
		"a node that is what it was before is not changed": {func(r *record) { r.Changes = r.Changes.Cordon("a", true).Cordon("a", false) }, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			have := *want
			test.change(&have)
			if why := have.difference(want); (why == "") != (test.why == "") || !strings.Contains(why, test.why) {
				t.Errorf("differs says %q, want %q", why, test.why)
			}
		})
	}
	for port, differs := range map[int]bool{6443: false, 6444: true, 0: true} {
		if why := (&record{APIServerPort: port}).difference(&record{APIServerPort: 6443}); (why != "") != differs {
			t.Errorf("a cluster at port %d where 6443 is asked for: %q", port, why)
		}
	}
}

func TestChangesLeaveThoseThatTheyComeFromAsTheyAre(t *testing.T) {
	var none Changes
	one := none.With("a", "kubelet", &ComponentChange{Gates: map[string]bool{"EnvFiles": true}})
	two := one.With("a", "kubectl", &ComponentChange{}).Cordon("a", true)
	if len(none) != 0 || len(one["a"].Components) != 1 || one["a"].Cordoned {
		t.Errorf("no changes became %v, one became %v", none, one)
	}
	if change, ok := two["a"].Components["kubelet"]; !ok || !change.Gates["EnvFiles"] {
		t.Errorf("the kubelet's change is %v, %t", change, ok)
	}
	two = two.With("a", "kubelet", nil).With("a", "kubectl", nil)
	if want := (Changes{"a": {Cordoned: true, Components: map[string]ComponentChange{}}}); !cmp.Equal(want, two) {
		t.Errorf("a node that is still cordoned: %v", two)
	}
	if left := two.Cordon("a", false); len(left) != 0 {
		t.Errorf("a node that is as it was: %v", left)
	}
}

func TestAClusterOfAnotherCheckoutIsLeftAlone(t *testing.T) {
	f, l, e := newFakeDocker(t)
	theirs := t.TempDir()
	f.addCluster(t, &record{ImageID: "sha256:1111", Workers: 1, Checkout: theirs})
	_, created := Create(t.Context(), l, e, podenvConfig(), nil)
	_, found := Find(t.Context(), l, e, "podenv")
	for does, err := range map[string]error{"Create": created, "Find": found} {
		if !errors.Is(err, ErrNotOurs) || !strings.Contains(err.Error(), "the checkout "+theirs+" made cluster podenv") {
			t.Errorf("%s: %v, want the other checkout's path", does, err)
		}
	}
	if nodes := f.names(t, "containers"); len(nodes) != 2 {
		t.Errorf("nodes left: %q", nodes)
	}
	link := l.Root + "-link"
	if err := os.Symlink(theirs, link); err != nil {
		t.Fatal(err)
	}
	l.Root = link
	if _, err := Find(t.Context(), l, e, "podenv"); err != nil {
		t.Errorf("the same checkout by another path: %v", err)
	}
	l.Root = t.TempDir()
	if err := os.RemoveAll(theirs); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(t.Context(), l, e, "podenv"); err != nil {
		t.Errorf("a checkout that is gone still holds the cluster: %v", err)
	}
}
