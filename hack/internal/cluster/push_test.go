package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"sigs.k8s.io/yaml"
)

// fakeSwap runs a build and notes what is done with it.
type fakeSwap struct {
	runs   string
	old    string
	new    string
	done   []string
	failAt string
	fail   error
	stop   func() // called where it fails
	badOld bool
}

func (f *fakeSwap) do(what string) error {
	f.done = append(f.done, what)
	if what == f.failAt {
		if f.stop != nil {
			f.stop()
		}
		return f.fail
	}
	return nil
}

func (f *fakeSwap) running(context.Context, Node) (string, error) { return f.runs, nil }
func (f *fakeSwap) put(context.Context) error                     { return f.do("put") }
func (f *fakeSwap) clean(context.Context) error                   { return f.do("clean") }
func (f *fakeSwap) tail(context.Context, Node) string             { return "panic: the new kubelet" }
func (f *fakeSwap) turn(context.Context) error                    { f.runs = f.new; return f.do("turn") }
func (f *fakeSwap) back(context.Context) error                    { f.runs = f.old; return f.do("back") }
func (f *fakeSwap) serves(ctx context.Context, sum string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if f.runs != sum || f.badOld && sum == f.old {
		return fmt.Errorf("%s runs, not %s", f.runs, sum)
	}
	return f.do("serves " + sum)
}

func TestPushSwapsABuildOrPutsTheOldOneBack(t *testing.T) {
	broken := errors.New("it crashes")
	tests := map[string]struct {
		swap      fakeSwap
		cancelled bool
		done      string // what was done, in order
		runs      string
		pushed    map[string]pushed
		errs      []string
	}{
		"a build that serves stays": {
			done: "put turn serves-new clean", runs: "new",
			pushed: map[string]pushed{"kubelet": {Original: "old", Current: "new"}},
		},
		"a build that runs already is not touched": {
			swap: fakeSwap{runs: "new"},
			runs: "new",
		},
		"a build that does not reach the nodes changes nothing": {
			swap: fakeSwap{failAt: "put", fail: broken},
			done: "put clean", runs: "old",
			errs: []string{"it crashes"},
		},
		"a build that cannot be started goes": {
			swap: fakeSwap{failAt: "turn", fail: broken},
			done: "put turn back serves-old clean", runs: "old",
			errs: []string{"it crashes", "the old build is back"},
		},
		"a build that does not serve goes, and its log is shown": {
			swap: fakeSwap{failAt: "serves new", fail: broken},
			done: "put turn serves-new back serves-old clean", runs: "old",
			errs: []string{"it crashes", "last lines of its log on podenv-worker", "panic: the new kubelet", "the old build is back"},
		},
		"a push that is interrupted is taken back": {
			swap: fakeSwap{failAt: "turn", fail: context.Canceled}, cancelled: true,
			done: "put turn back serves-old clean", runs: "old",
			errs: []string{"context canceled", "the old build is back"},
		},
		"a build that does not come back either leaves a cluster to be made anew": {
			swap: fakeSwap{failAt: "serves new", fail: broken, badOld: true},
			done: "put turn serves-new back", runs: "old",
			pushed: map[string]pushed{"kubelet": {Original: "old", Current: "new"}},
			errs:   []string{"it crashes", "could not be put back", "podenv up"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, l, e := newFakeDocker(t)
			f.add(t, fakeNode("podenv", "podenv-control-plane", "control-plane", true))
			c := open(l, e, "podenv")
			c.record = &record{ImageID: "sha256:1111"}
			if err := c.save(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := test.swap
			s.old, s.new = "old", "new"
			if s.runs == "" {
				s.runs = "old"
			}
			if test.cancelled {
				s.stop = cancel
			}
			p := &push{Cluster: c, component: "kubelet", sum: "new", nodes: []Node{{Name: "podenv-worker"}}}
			err := p.run(ctx, &s)
			if (err == nil) != (test.errs == nil) {
				t.Fatalf("error %v", err)
			}
			for _, want := range test.errs {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not have %q:\n%v", want, err)
				}
			}
			if got := strings.Join(slices.Collect(mapped(s.done)), " "); got != test.done {
				t.Errorf("did %q, want %q", got, test.done)
			}
			if s.runs != test.runs {
				t.Errorf("the %s build runs, want the %s one", s.runs, test.runs)
			}
			onNode := c.docker.readRecord(t.Context(), "podenv")
			if onNode == nil || !maps.Equal(onNode.Pushed, test.pushed) {
				t.Errorf("recorded %+v, want pushed %v", onNode, test.pushed)
			}
		})
	}
}

// mapped writes each thing done as one word.
func mapped(done []string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, d := range done {
			if !yield(strings.ReplaceAll(d, " ", "-")) {
				return
			}
		}
	}
}

func TestPushRefusesWhatItCannotSwap(t *testing.T) {
	f, l, e := newFakeDocker(t)
	f.add(t, fakeNode("podenv", "podenv-control-plane", "control-plane", true))
	binary := filepath.Join(t.TempDir(), "binary")
	if err := os.WriteFile(binary, []byte("binary"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		component, binary string
		record            *record
		want              string
	}{
		"a half-made cluster":           {"kubelet", binary, nil, "podenv up"},
		"a component that nobody knows": {"etcd", binary, &record{}, "push kubelet, kube-apiserver"},
		"a pod without an image":        {"kube-scheduler", binary, &record{}, "takes an image"},
		"a binary that was not built":   {"kubelet", binary + ".gone", &record{}, "podenv build"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := open(l, e, "podenv")
			c.record = test.record
			err := c.Push(t.Context(), test.component, test.binary, "", nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestSetImage(t *testing.T) {
	const manifest = `apiVersion: v1
kind: Pod
metadata:
  name: kube-apiserver
  annotations: {unknown.example/field: kept}
spec:
  containers:
  - name: kube-apiserver
    image: registry.k8s.io/kube-apiserver:v1.33.13
    command: [kube-apiserver, "--feature-gates=EnvFiles=true", "--secure-port=6443"]
    livenessProbe: {httpGet: {port: 6443}, futureField: [1, true, "2"]}
  - name: sidecar
    image: registry.k8s.io/sidecar:1
status: {}
`
	got, err := setImage(manifest, "4711", "kube-apiserver", "registry.k8s.io/kube-apiserver:new")
	if err != nil {
		t.Fatal(err)
	}
	decode := func(text string) string {
		t.Helper()
		json, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return string(json)
	}
	want := decode(strings.NewReplacer("kube-apiserver:v1.33.13", "kube-apiserver:new", "metadata:", `metadata:
  uid: "4711"`).Replace(manifest))
	if decode(got) != want {
		t.Errorf("got\n%s\nwant what is\n%s", got, want)
	}
	for name, test := range map[string]struct{ manifest, uid, says string }{
		"a file that is no YAML":             {"{", "4711", "yaml"},
		"a file that is no pod":              {"spec: []", "4711", "no metadata"},
		"a pod whose UID is not known":       {manifest, "", "no UID"},
		"a pod that has no containers":       {"metadata: {name: a}", "4711", "no container kube-apiserver"},
		"a pod that has another container":   {"metadata: {}\nspec: {containers: [{name: etcd}]}", "4711", "no container kube-apiserver"},
		"a pod whose containers are no list": {"metadata: {}\nspec: {containers: 1}", "4711", "no container kube-apiserver"},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			if _, err := setImage(test.manifest, test.uid, "kube-apiserver", "x"); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want one with %q", err, test.says)
			}
		})
	}
}

func TestNewestLog(t *testing.T) {
	for names, want := range map[string]int{"": 0, "0.log\n": 1, "9.log\n10.log\n10.log.20261121-013000\n": 11, "previous\n": 0} {
		if got := newestLog(names); got != want {
			t.Errorf("newestLog(%q) = %d, want %d", names, got, want)
		}
	}
}

func TestParseUnit(t *testing.T) {
	got, err := parseUnit("MainPID=4711\nNRestarts=2\n")
	if want := (unit{pid: "4711", restarts: 2}); err != nil || got != want {
		t.Errorf("parseUnit: %+v, %v", got, err)
	}
	for _, out := range []string{"", "Failed to connect to bus", "MainPID=1\nNRestarts=many"} {
		if u, err := parseUnit(out); err == nil {
			t.Errorf("parseUnit(%q) = %+v", out, u)
		}
	}
}

func TestRetagNamesAnImageByItsContent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image.tar")
	tag := name.MustParseReference("registry.k8s.io/kube-proxy:v1.33.13_podenv.4").(name.Tag)
	if err := tarball.WriteToFile(path, tag, empty.Image); err != nil {
		t.Fatal(err)
	}
	r, err := retag(path)
	if err != nil {
		t.Fatal(err)
	}
	id, err := empty.Image.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.ref.Name(), "registry.k8s.io/kube-proxy:v1.33.13_podenv.4-"+id.Hex[:12]; got != want {
		t.Errorf("new name %s, want %s", got, want)
	}
	archive, err := r.open()
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	again := filepath.Join(t.TempDir(), "again.tar")
	f, err := os.Create(again)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadFrom(archive); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := tarball.ImageFromPath(again, &r.ref); err != nil {
		t.Errorf("the archive that is loaded does not have the image under its new name: %v", err)
	}
	if _, err := retag(filepath.Join(t.TempDir(), "none.tar")); err == nil || !strings.Contains(err.Error(), "none.tar") {
		t.Errorf("retag of no file: %v", err)
	}
}
