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
func (f *fakeSwap) serves(ctx context.Context, want state) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if f.runs != want.SHA256 || f.badOld && want.SHA256 == f.old {
		return fmt.Errorf("%s runs, not %s", f.runs, want.SHA256)
	}
	return f.do("serves " + want.SHA256)
}

func (f *fakeSwap) set(context.Context, Node) (map[string]bool, error) { return nil, nil }
func (f *fakeSwap) files() []string                                    { return nil }

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
			p := &push{sum: "new", swap: &swap{Cluster: c, change: change{binary: "file"}, component: "kubelet", nodes: []Node{{Name: "podenv-worker"}}, phase: within(nil)}}
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
		"a component that nobody knows": {"kubelt", binary, &record{}, "choose kubelet, kube-apiserver"},
		"a component that is not built": {"etcd", binary, &record{}, "etcd is not built from Kubernetes"},
		"a node that operations changed": {
			"kubelet", binary,
			&record{Nodes: map[string]nodeRecord{"podenv-control-plane": {Components: map[string]componentRecord{"kubelet": {}}}}},
			"podenv node undo podenv-control-plane",
		},
		"a pod without an image":      {"kube-scheduler", binary, &record{}, "takes an image"},
		"a binary that was not built": {"kubelet", binary + ".gone", &record{}, "podenv build"},
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
