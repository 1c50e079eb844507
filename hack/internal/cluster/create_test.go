package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"podenv.dev/hack/internal/poll"
	"podenv.dev/hack/internal/remedy"
)

func podenvConfig() Config {
	return Config{Name: "podenv", NodeImage: "podenv-node", Workers: 1}
}

// foreignNetwork is the network of other people's clusters.
const foreignNetwork = "kind"

// checkNothingLeft checks that the engine and _output are as before a Create.
func checkNothingLeft(t *testing.T, f fakeDocker, outputs ...string) {
	t.Helper()
	for _, kind := range []string{"containers", "networks"} {
		left := f.names(t, kind)
		if left = slices.DeleteFunc(left, func(name string) bool { return name == foreignNetwork }); len(left) > 0 {
			t.Errorf("%s left: %q", kind, left)
		}
	}
	for _, path := range outputs {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s left", path)
		}
	}
}

func TestCreateThatCannotSucceedSaysWhatToDoAndLeavesNothing(t *testing.T) {
	tests := map[string]struct {
		change func(t *testing.T, f fakeDocker, cfg *Config)
		is     error
		wants  []string
	}{
		"a name that kind does not take": {
			change: func(_ *testing.T, _ fakeDocker, cfg *Config) { cfg.Name = "Pod Env" },
			wants:  []string{`"Pod Env" cannot name a cluster`, "lower-case"},
		},
		"a name that is too long for a host name": {
			change: func(_ *testing.T, _ fakeDocker, cfg *Config) { cfg.Name = strings.Repeat("p", 51) },
			wants:  []string{"at most 50"},
		},
		"no node image": {
			change: func(_ *testing.T, _ fakeDocker, cfg *Config) { cfg.NodeImage = "podenv/node:gone" },
			wants:  []string{"does not have node image podenv/node:gone", "podenv image"},
		},
		"a negative number of workers": {
			change: func(_ *testing.T, _ fakeDocker, cfg *Config) { cfg.Workers = -1 },
			wants:  []string{"-1 workers"},
		},
		"a gate that the release does not know": {
			change: func(t *testing.T, f fakeDocker, cfg *Config) {
				cfg.Gates = map[string]bool{"EnvFilez": true}
				f.write(t, "fail/kubelet", `"command failed" err="unrecognized feature gate: EnvFilez"`)
			},
			wants: []string{"unrecognized feature gate: EnvFilez", "leave out"},
		},
		"a port that is none": {
			change: func(_ *testing.T, _ fakeDocker, cfg *Config) { cfg.APIServerPort = 65536 },
			wants:  []string{"port 65536", "up to 65535"},
		},
		"a port that is taken": {
			change: func(t *testing.T, _ fakeDocker, cfg *Config) { cfg.APIServerPort = takenPort(t) },
			is:     remedy.ErrPortInUse,
			wants:  []string{"something listens on 127.0.0.1:", "ss -ltnp", "--api-server-port"},
		},
		"a port that was taken since it was chosen": {
			change: func(t *testing.T, f fakeDocker, _ *Config) {
				f.write(t, "fail/run", "Bind for 127.0.0.1:40000 failed: port is already allocated")
			},
			wants: []string{"creating cluster podenv", "docker run --name podenv-", "127.0.0.1:40000", "run it again"},
		},
		"a disk that is full": {
			change: func(t *testing.T, f fakeDocker, _ *Config) {
				f.write(t, "fail/run", "write /var/lib/docker/x: no space left on device")
			},
			wants: []string{"podenv clean"},
		},
		"an engine that refuses privileged containers": {
			change: func(t *testing.T, f fakeDocker, _ *Config) {
				f.write(t, "fail/run", "runc create failed: unable to apply caps: operation not permitted")
			},
			wants: []string{"podenv doctor"},
		},
		"an engine that has stopped": {
			change: func(t *testing.T, f fakeDocker, _ *Config) {
				f.write(t, "fail/ps", "Cannot connect to the Docker daemon at unix:///var/run/docker.sock")
			},
			wants: []string{"Cannot connect to the Docker daemon"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, l, e := newFakeDocker(t)
			cfg := podenvConfig()
			test.change(t, f, &cfg)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a deadline only
			defer cancel()
			_, err := Create(ctx, l, e, cfg, nil)
			if err == nil {
				t.Fatal("the cluster was created")
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("error %v is not %v", err, test.is)
			}
			for _, want := range test.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not have %q:\n%v", want, err)
				}
			}
			checkNothingLeft(t, f, open(l, e, cfg.Name).dir)
		})
	}
}

func TestCreateLeavesOtherPeoplesContainersAlone(t *testing.T) {
	tests := map[string]fakeContainer{
		"a cluster of plain kind":                  fakeNode("podenv", "podenv-control-plane", "control-plane", false),
		"a container with the name of a node":      {Name: "podenv-worker2"},
		"another kind cluster whose node is named": fakeNode("pod", "podenv-worker", "worker", false),
	}
	for name, theirs := range tests {
		t.Run(name, func(t *testing.T) {
			f, l, e := newFakeDocker(t)
			f.add(t, theirs)
			_, err := Create(t.Context(), l, e, podenvConfig(), nil)
			if !errors.Is(err, ErrNotOurs) || !strings.HasSuffix(err.Error(), "choose another name with --name") {
				t.Errorf("Create: %v", err)
			}
			if _, err := Find(t.Context(), l, e, "podenv"); !errors.Is(err, ErrNotOurs) {
				t.Errorf("Find: %v", err)
			}
			if left := f.names(t, "containers"); len(left) != 1 {
				t.Errorf("containers left: %q", left)
			}
		})
	}
}

func TestContainersWithSimilarNamesAreIgnored(t *testing.T) {
	f, l, e := newFakeDocker(t)
	f.add(t, fakeContainer{Name: "podenv-database"})
	f.add(t, fakeNode("podenv-worker", "podenv-worker-control-plane", "control-plane", false))
	if _, err := Find(t.Context(), l, e, "podenv"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Find: %v, want ErrNotFound", err)
	}
}

func TestCreateThatIsCancelledDeletesTheNodesMadeSoFar(t *testing.T) {
	f, l, e := newFakeDocker(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := Create(ctx, l, e, podenvConfig(), nil)
		done <- err
	}()
	f.awaitRun(t, "kubeadm-runs")
	if nodes := f.names(t, "containers"); len(nodes) != 2 {
		t.Fatalf("nodes before Ctrl-C: %q", nodes)
	}
	if networks := f.names(t, "networks"); len(networks) != 1 || networks[0] != "kind-podenv" {
		t.Errorf("networks before Ctrl-C: %q, want the cluster's own", networks)
	}
	cancel()
	checkCanceled(t, done)
	checkNothingLeft(t, f, open(l, e, "podenv").dir, filepath.Join(l.Logs(), "cluster-podenv"))
}

// An archive that is made while it is read may keep its reader waiting.
func TestALoadThatIsCancelledEnds(t *testing.T) {
	f, l, e := newFakeDocker(t)
	f.addCluster(t, &record{})
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- open(l, e, "podenv").LoadImage(ctx, func() (io.ReadCloser, error) { return r, nil }, nil, "podenv-worker")
	}()
	f.awaitRun(t, "ctr-runs")
	cancel()
	checkCanceled(t, done)
}

// awaitRun waits until the command that touches file runs on a node.
func (f fakeDocker) awaitRun(t *testing.T, file string) {
	t.Helper()
	if err := poll.Until(t.Context(), 30*time.Second, func(context.Context) error {
		_, err := os.Stat(filepath.Join(f.dir, file))
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// checkCanceled checks that what was cancelled ends, and with what error.
func checkCanceled(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it goes on after its context has ended")
	}
}

func TestFindAndDelete(t *testing.T) {
	whole, err := json.Marshal(record{NodeImage: "podenv-node", ImageID: "sha256:1111", Workers: 1, PreviousContexts: map[string]string{"/nowhere": "theirs"}})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ record string }{
		"a whole cluster":                {string(whole)},
		"a half-made cluster":            {""},
		"a cluster with a broken record": {"{"},
	}
	for name, test := range tests {
		t.Run(name+" is found without _output and deleted", func(t *testing.T) {
			f, l, e := newFakeDocker(t)
			f.write(t, "networks/kind-podenv", "--driver=bridge")
			f.write(t, "networks/"+foreignNetwork, "--driver=bridge")
			node := fakeNode("podenv", "podenv-control-plane", "control-plane", true)
			if test.record != "" {
				node.Files = map[string]string{recordPath: test.record}
			}
			f.add(t, node)
			f.add(t, fakeNode("podenv", "podenv-worker", "worker", true))
			c, err := Find(t.Context(), l, e, "podenv")
			if err != nil {
				t.Fatal(err)
			}
			if got := c.record != nil; got != (test.record == string(whole)) {
				t.Errorf("the record is there: %t", got)
			}
			if err := c.Delete(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			checkNothingLeft(t, f, open(l, e, "podenv").dir)
			if networks := f.names(t, "networks"); len(networks) != 1 {
				t.Errorf("networks: %q, want that of other people", networks)
			}
			if err := c.Delete(t.Context(), nil); err != nil {
				t.Errorf("deleting it again: %v", err)
			}
			if _, err := Find(t.Context(), l, e, "podenv"); !errors.Is(err, ErrNotFound) {
				t.Errorf("Find after Delete: %v", err)
			}
		})
	}
}

func TestDeleteTakesTheClusterOutOfTheKubeconfigs(t *testing.T) {
	const text = `apiVersion: v1
kind: Config
clusters: [{name: kind-podenv, cluster: {server: "https://127.0.0.1:1"}}, {name: theirs, cluster: {server: "https://192.0.2.1"}}]
contexts: [{name: kind-podenv, context: {cluster: kind-podenv, user: kind-podenv}}, {name: theirs, context: {cluster: theirs, user: theirs}}]
users: [{name: kind-podenv}, {name: theirs}]
current-context: kind-podenv
`
	f, l, e := newFakeDocker(t)
	earlier, recorded := filepath.Join(t.TempDir(), "earlier"), filepath.Join(t.TempDir(), "recorded")
	current := os.Getenv("KUBECONFIG")
	for _, path := range []string{earlier, recorded, current} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data, err := json.Marshal(record{ImageID: "sha256:1111", PreviousContexts: map[string]string{earlier: "", recorded: "theirs"}})
	if err != nil {
		t.Fatal(err)
	}
	node := fakeNode("podenv", "podenv-control-plane", "control-plane", true)
	node.Files = map[string]string{recordPath: string(data)}
	f.add(t, node)
	c, err := Find(t.Context(), l, e, "podenv")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{earlier, recorded, current} {
		left, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(left), "podenv") || !strings.Contains(string(left), "theirs") {
			t.Errorf("%s has\n%s", path, left)
		}
		if got, want := currentContext(path), map[string]string{recorded: "theirs"}[path]; got != want {
			t.Errorf("the current context of %s is %q, want %q", path, got, want)
		}
	}
}

func TestTracesOfAClusterWhoseNodesAreGoneAreDeleted(t *testing.T) {
	f, l, e := newFakeDocker(t)
	f.add(t, fakeNode("podenv", "podenv-control-plane", "control-plane", true))
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: kind-podenv, cluster: {}}]\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	made := open(l, e, "podenv")
	made.record = &record{ImageID: "sha256:1111", PreviousContexts: map[string]string{kubeconfig: ""}}
	if err := made.save(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(f.dir, "containers/podenv-control-plane")); err != nil {
		t.Fatal(err)
	}
	c, err := Find(t.Context(), l, e, "podenv")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Nodes(t.Context()); !errors.Is(err, ErrNotFound) {
		t.Errorf("Nodes: %v, want ErrNotFound", err)
	}
	if err := c.Delete(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadFile(kubeconfig); err != nil || strings.Contains(string(left), "podenv") {
		t.Errorf("the kubeconfig has, %v,\n%s", err, left)
	}
	checkNothingLeft(t, f, open(l, e, "podenv").dir)
}

func TestCreateWithAGateThatIsRefusedKeepsTheClusterThatIsThere(t *testing.T) {
	f, l, e := newFakeDocker(t)
	f.write(t, "fail/kubelet", "unrecognized feature gate: EnvFilez")
	f.add(t, fakeNode("podenv", "podenv-control-plane", "control-plane", true))
	cfg := podenvConfig()
	cfg.Gates = map[string]bool{"EnvFilez": true}
	if _, err := Create(t.Context(), l, e, cfg, nil); err == nil {
		t.Error("the cluster was created")
	}
	if nodes := f.names(t, "containers"); len(nodes) != 1 {
		t.Errorf("nodes left: %q", nodes)
	}
}

func TestAClusterThatDoesNotExistIsMadeWithItsName(t *testing.T) {
	_, l, e := newFakeDocker(t)
	for name, command := range map[string]string{"podenv": "`podenv up`", "other": "`podenv up --name other`"} {
		if _, err := Find(t.Context(), l, e, name); !errors.Is(err, ErrNotFound) || !strings.HasSuffix(err.Error(), command) {
			t.Errorf("Find: %v, want %s", err, command)
		}
	}
}

func TestTheContextThatWasCurrentComesBackIfItExists(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	const text = "apiVersion: v1\nkind: Config\ncontexts: [{name: theirs, context: {}}]\n"
	for previous, want := range map[string]string{"theirs": "theirs", "gone": "", "": ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := useContext(path, previous); err != nil || currentContext(path) != want {
			t.Errorf("after %q the current context is %q, %v", previous, currentContext(path), err)
		}
	}
}
