package cluster

import (
	"strings"
	"testing"
)

func TestDecide(t *testing.T) {
	ours := func(name string) container {
		return container{Name: name, Cluster: "podenv", Running: true, Marked: true}
	}
	both := []container{ours("podenv-control-plane"), ours("podenv-worker")}
	stopped := ours("podenv-worker")
	stopped.Running = false
	theirs := ours("podenv-worker")
	theirs.Marked = false
	want := &record{NodeImage: "podenv/node:1", ImageID: "sha256:1", Workers: 1, Gates: map[string]bool{"EnvFiles": true}}
	with := func(change func(*record)) *record {
		r := *want
		change(&r)
		return &r
	}
	tests := map[string]struct {
		found []container
		have  *record
		do    action
		why   string
	}{
		"nothing there is created":                     {nil, nil, create, ""},
		"the same cluster is reused":                   {both, want, reuse, ""},
		"another kubeconfig is no other cluster":       {both, with(func(r *record) { r.Kubeconfig = "/elsewhere" }), reuse, ""},
		"another name of the image is no other image":  {both, with(func(r *record) { r.NodeImage = "podenv/node:2" }), reuse, ""},
		"a half-made cluster is recreated":             {both[:1], nil, recreate, "half-made"},
		"another node image is another cluster":        {both, with(func(r *record) { r.ImageID = "sha256:2" }), recreate, "podenv/node:1 (2), not podenv/node:1 (1)"},
		"another number of workers is another cluster": {both, with(func(r *record) { r.Workers = 2 }), recreate, "2 workers, not 1"},
		"another gate is another cluster":              {both, with(func(r *record) { r.Gates = nil }), recreate, `"EnvFiles=true"`},
		"a gate turned off is another cluster":         {both, with(func(r *record) { r.Gates = map[string]bool{"EnvFiles": false} }), recreate, `"EnvFiles=false"`},
		"a port that nobody asks for is any port":      {both, with(func(r *record) { r.APIServerPort = 6443 }), reuse, ""},
		"a pushed kubelet makes another cluster":       {both, with(func(r *record) { r.push("kubelet", "a", "b") }), recreate, "another kubelet"},
		"a lost node makes another cluster":            {both[:1], want, recreate, "1 of its 2 nodes"},
		"a stopped node makes another cluster":         {[]container{both[0], stopped}, want, recreate, "podenv-worker is stopped"},
		"a cluster of plain kind is refused":           {[]container{theirs}, nil, refuse, "not made by podenv"},
		"one node of plain kind is enough to refuse":   {[]container{both[0], theirs}, want, refuse, "not made by podenv"},
		"a container that is no node is refused":       {[]container{{Name: "podenv-worker", Running: true}}, nil, refuse, "container podenv-worker"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			do, why := decide(test.found, test.have, want)
			if do != test.do || !strings.Contains(why, test.why) {
				t.Errorf("decide: %s because %q, want %s because %q", do, why, test.do, test.why)
			}
		})
	}
}

func TestDecideOnThePortOfTheAPIServer(t *testing.T) {
	found := []container{{Name: "podenv-control-plane", Cluster: "podenv", Running: true, Marked: true}}
	want := &record{ImageID: "sha256:1", APIServerPort: 6443}
	for have, expect := range map[int]action{6443: reuse, 6444: recreate, 0: recreate} {
		if do, why := decide(found, &record{ImageID: "sha256:1", APIServerPort: have}, want); do != expect {
			t.Errorf("a cluster at port %d where 6443 is asked for: %s because %q, want %s", have, do, why, expect)
		}
	}
}

func TestRecordOfPushes(t *testing.T) {
	r := &record{ImageID: "sha256:1"}
	r.push("kubelet", "image", "first")
	r.push("kubelet", "first", "second")
	if got, want := r.Pushed["kubelet"], (pushed{Original: "image", Current: "second"}); got != want {
		t.Errorf("after two pushes: %+v, want %+v", got, want)
	}
	r.push("kubelet", "second", "image")
	if len(r.Pushed) != 0 {
		t.Errorf("after a push of the node image's own build: %+v, want none", r.Pushed)
	}
}
