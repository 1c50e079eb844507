package engine

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/remedy"
	"podenv.dev/hack/internal/testutil"
)

func parseInfo(t testing.TB, text string) Info {
	t.Helper()
	var info Info
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		t.Fatal(err)
	}
	return info
}

// container makes the docker command one whose run, and exec, end with the given
// shell lines.
func (f *fake) container(run, exec string) {
	f.Link("go")
	f.Script("docker", "case $1 in\nimport) cat > $F/image;;\nrun) "+run+";;\nexec) "+exec+";;\nesac")
}

func TestProbeRunsAPrivilegedContainerAndAProcessInIt(t *testing.T) {
	f := newFake(t)
	f.container("true", "true")
	if err := probe(t.Context(), theRepository, nil); err != nil {
		t.Fatal(err)
	}
	run := f.Calls("docker run")
	if len(run) != 1 || !strings.Contains(run[0], "--privileged") || !strings.Contains(run[0], "--pull=never") {
		t.Errorf("ran %q", run)
	}
	if exec := f.Calls("docker exec --privileged"); len(exec) != 1 {
		t.Errorf("executed %q", exec)
	}
	f.wantClean()
}

func TestProbeThatIsRefusedLeavesNothingBehind(t *testing.T) {
	for name, scripts := range map[string][2]string{
		"as a container":              {"echo unable to apply caps >&2; exit 125", "true"},
		"as a process in a container": {"true", "echo unable to apply caps >&2; exit 126"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.container(scripts[0], scripts[1])
			err := probe(t.Context(), theRepository, nil)
			if !errors.Is(err, ErrPrivileged) || !strings.Contains(err.Error(), "unable to apply caps") {
				t.Errorf("error %v, want ErrPrivileged with what the engine said", err)
			}
			f.wantClean()
		})
	}
}

// wantClean fails unless the probe's container and image were taken away.
func (f *fake) wantClean() {
	f.t.Helper()
	run := f.Calls("docker run")
	if len(run) != 1 {
		f.t.Fatalf("ran %q, want one container", run)
	}
	words := strings.Fields(run[0])
	name := words[slices.Index(words, "--name")+1]
	image := words[len(words)-3]
	if rm := f.Calls("docker rm"); len(rm) != 1 || !strings.HasSuffix(rm[0], " "+name) {
		f.t.Errorf("removed containers %q, want %s", rm, name)
	}
	if rmi := f.Calls("docker rmi"); len(rmi) != 1 || !strings.HasSuffix(rmi[0], " "+image) {
		f.t.Errorf("removed images %q, want %s", rmi, image)
	}
}

// repositoryWithProbe is one with an empty cache and the probe's source.
func repositoryWithProbe(t testing.TB) layout.Layout {
	t.Helper()
	l := layout.Layout{Root: t.TempDir()}
	source, err := os.ReadFile("probe/main.go")
	if err != nil {
		t.Fatal(err)
	}
	testutil.WriteFile(t, filepath.Join(l.Root, "hack/internal/engine/probe/main.go"), string(source))
	testutil.WriteFile(t, filepath.Join(l.Root, "go.mod"), "module podenv.dev\n\ngo 1.25\n")
	return l
}

func TestProbeRunsOncePerDaemon(t *testing.T) {
	f := newFake(t)
	f.container("true", "true")
	l := repositoryWithProbe(t)
	for i, want := range []bool{false, true} {
		cached, err := cachedProbe(t.Context(), l, "daemon", nil)
		if err != nil {
			t.Fatal(err)
		}
		if cached != want {
			t.Errorf("probe %d: cached %v, want %v", i, cached, want)
		}
	}
	if cached, err := cachedProbe(t.Context(), l, "restarted", nil); err != nil || cached {
		t.Errorf("another daemon: cached %v, error %v", cached, err)
	}
	if runs := f.Calls("docker run"); len(runs) != 2 {
		t.Errorf("ran %q, want one container a daemon", runs)
	}
}

func TestRefusedProbeIsTriedAgain(t *testing.T) {
	f := newFake(t)
	f.container("exit 125", "true")
	l := repositoryWithProbe(t)
	for range 2 {
		if _, err := cachedProbe(t.Context(), l, "daemon", nil); !errors.Is(err, ErrPrivileged) {
			t.Fatalf("error %v, want ErrPrivileged", err)
		}
	}
	if runs := f.Calls("docker run"); len(runs) != 2 {
		t.Errorf("ran %q, want it tried twice", runs)
	}
}

func TestRefusalIsExplained(t *testing.T) {
	refused := errors.Join(ErrPrivileged, errors.New("unable to apply caps"))
	for name, test := range map[string]struct {
		host func(*fake)
		info string
		want string // part of the remedy
	}{
		"on a bounded host with a daemon that was started plainly": {
			func(f *fake) { f.bound(); f.Link("go") }, `{"DefaultRuntime": "runc"}`, "daemon.json and restart dockerd",
		},
		"on a bounded host where the runtime cannot be built": {
			(*fake).bound, `{"DefaultRuntime": "runc"}`, "stop it, and `podenv up`",
		},
		"on a bounded host with our own daemon": {
			(*fake).bound, `{"DefaultRuntime": "podenv"}`, "dockerd.log",
		},
		"by a rootless daemon": {
			(*fake).bound, `{"SecurityOptions": ["name=seccomp,profile=default", "name=rootless"]}`, "docker context ls",
		},
		"on a full host": {
			func(*fake) {}, `{}`, "allows privileged containers",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			test.host(f)
			info := parseInfo(t, test.info)
			err := f.explainRefusal(info, refused, f.offerRuntime(t.Context(), theRepository, info))
			var host *remedy.Error
			if !errors.Is(err, ErrPrivileged) || !errors.As(err, &host) {
				t.Fatalf("error %v, want a remedy.Error of kind ErrPrivileged", err)
			}
			if !strings.Contains(host.Remedy, test.want) || !strings.Contains(err.Error(), "unable to apply caps") {
				t.Errorf("want a remedy with %q, and what the engine said:\n%v", test.want, err)
			}
		})
	}
}

// This is the one test that needs a real engine: what a fake cannot show is that
// the kernel and runc go along.
func TestTheEngineOfThisHostRunsPrivilegedContainers(t *testing.T) {
	e, err := Find(t.Context())
	if err != nil {
		t.Skipf("needs an engine that serves: %v", err)
	}
	var before []string
	added := func() []string {
		out, err := e.Docker(t.Context(), "images", "--format", "{{.ID}}:{{.Tag}}", "podenv/probe").Output()
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(strings.Fields(out), func(image string) bool { return slices.Contains(before, image) })
	}
	before = added()
	if err := e.Privileged(t.Context(), theRepository); err != nil {
		t.Fatal(err)
	}
	// Others may probe the same engine now: their images go, too.
	gomega.NewWithT(t).Eventually(added, time.Minute, time.Second).Should(gomega.BeEmpty(), "images are left behind")
}
