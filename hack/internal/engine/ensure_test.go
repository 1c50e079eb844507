package engine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podenv.dev/hack/internal/remedy"
)

func TestEnsureMakesTheEngineServe(t *testing.T) {
	for name, test := range map[string]struct {
		host    func(*fake)
		started bool
		calls   []string // of dockerd, systemctl and sudo
	}{
		"which serves already": {
			host: func(f *fake) { f.Write("serves", "") },
		},
		"by starting dockerd without flags on a host with all capabilities": {
			host: func(*fake) {}, started: true,
			calls: []string{"dockerd"},
		},
		"by starting dockerd with the OCI runtime on a bounded host": {
			host: func(f *fake) { f.bound(); f.Link("go") }, started: true,
			calls: []string{"dockerd --add-runtime podenv=STATE/podenv-oci-runtime --default-runtime podenv"},
		},
		"by starting dockerd without flags where daemon.json has our runtime": {
			host: func(f *fake) {
				f.bound()
				f.Link("go")
				f.Write("daemon.json", `{"default-runtime": "podenv", "runtimes": {"podenv": {"path": "/x"}}}`)
			},
			started: true,
			calls:   []string{"dockerd"},
		},
		"by starting dockerd with flags beside other settings in daemon.json": {
			host: func(f *fake) {
				f.bound()
				f.Link("go")
				f.Write("daemon.json", `{"data-root": "/data"}`)
			},
			started: true,
			calls:   []string{"dockerd --add-runtime podenv=STATE/podenv-oci-runtime --default-runtime podenv"},
		},
		"through systemd": {
			host: func(f *fake) { f.systemd = true; f.Script("systemctl", "touch $F/serves") }, started: true,
			calls: []string{"systemctl start docker"},
		},
		"through systemd with sudo": {
			host: func(f *fake) {
				f.systemd, f.uid = true, 1000
				f.Script("sudo", `shift; exec "$@"`)
				f.Script("systemctl", "touch $F/serves")
			},
			started: true,
			calls:   []string{"sudo -n systemctl start docker", "systemctl start docker"},
		},
		"by waiting for a dockerd that is starting": {
			host: func(f *fake) {
				// This process plays the daemon that has written its pid, and serves later.
				f.Script("docker", `
test "$1" = info || exit 0
test -e $F/asked2 && { echo '{"ServerVersion":"20.10.24"}'; exit 0; }
test -e $F/asked1 && touch $F/asked2
touch $F/asked1
echo 'Cannot connect to the Docker daemon' >&2; exit 1`)
				f.Write("run/docker.pid", f.process("dockerd"))
			},
			started: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			test.host(f)
			info, started, err := f.ensure(t.Context(), theRepository, nil)
			if err != nil {
				t.Fatal(err)
			}
			if info.ServerVersion != "20.10.24" || started != test.started {
				t.Errorf("version %q, started %v, want 20.10.24, %v", info.ServerVersion, started, test.started)
			}
			calls := f.Calls("dockerd", "systemctl", "sudo")
			for i := range calls {
				calls[i] = strings.ReplaceAll(calls[i], f.state, "STATE")
			}
			if diff := cmp.Diff(test.calls, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEnsureSaysWhyThereIsNoEngine(t *testing.T) {
	for name, test := range map[string]struct {
		host func(*fake)
		kind error
		said []string // the last is of the remedy
	}{
		"DOCKER_HOST names a daemon that does not serve": {
			host: func(f *fake) { f.t.Setenv("DOCKER_HOST", "tcp://127.0.0.1:1") },
			kind: ErrNoEngine, said: []string{"DOCKER_HOST=tcp://127.0.0.1:1", "unset DOCKER_HOST"},
		},
		"a docker context names a daemon that does not serve": {
			host: func(f *fake) {
				f.Script("docker", `
test "$1" = context && { echo unix:///run/user/1000/docker.sock; exit 0; }
echo 'Cannot connect to the Docker daemon' >&2; exit 1`)
			},
			kind: ErrNoEngine, said: []string{"/run/user/1000/docker.sock", "docker context use default"},
		},
		"the user may not talk to the daemon": {
			host: func(f *fake) { f.Write("denied", "") },
			kind: ErrNoEngine, said: []string{"permission denied", "usermod -aG docker"},
		},
		"the docker command is something else": {
			host: func(f *fake) { f.Script("docker", `echo '{"host": {}}'`) },
			kind: ErrNoEngine, said: []string{"does not answer as Docker does", "PATH"},
		},
		"neither root nor systemd": {
			host: func(f *fake) { f.uid = 1000 },
			kind: ErrNoEngine, said: []string{"only root", "sudo"},
		},
		"systemd cannot start it": {
			host: func(f *fake) { f.systemd = true; f.Script("systemctl", "echo Unit masked >&2; exit 1") },
			kind: ErrNoEngine, said: []string{"systemctl start docker", "Unit masked", "journalctl -u docker"},
		},
		"dockerd ends at once": {
			host: func(f *fake) { f.Script("dockerd", "echo failed to start: no idea >&2; exit 3") },
			kind: ErrNoEngine, said: []string{"dockerd", "exit status 3", "dockerd.log", "no idea", "fix what the log says"},
		},
		"dockerd has no iptables": {
			host: func(f *fake) { f.Script("dockerd", "echo iptables failed: table nat does not exist >&2; exit 1") },
			kind: ErrNoEngine, said: []string{"table nat", "update-alternatives"},
		},
		"dockerd finds the disk full": {
			host: func(f *fake) { f.Script("dockerd", "echo mkdir: no space left on device >&2; exit 1") },
			kind: ErrNoEngine, said: []string{"no space left", "podenv doctor"},
		},
		"dockerd never serves": {
			host: func(f *fake) {
				f.Script("dockerd", "echo $$ > $F/dockerd.pid; echo still loading; exec sleep 60")
				f.startTimeout = 500 * time.Millisecond
			},
			kind: ErrNoEngine, said: []string{"does not serve after 500ms", "still loading", "fix what the log says"},
		},
		"another dockerd never serves": {
			host: func(f *fake) {
				f.Write("run/docker.pid", f.process("dockerd"))
				f.startTimeout = 300 * time.Millisecond
			},
			kind: ErrNoEngine, said: []string{"does not serve after 300ms", "stop it"},
		},
		"the host is bounded and daemon.json has runtimes of its own": {
			host: func(f *fake) {
				f.bound()
				f.Link("go")
				f.Write("daemon.json", `{"runtimes": {"nvidia": {"path": "/nvidia"}}}`)
			},
			kind: ErrPrivileged, said: []string{"CAP_SYS_RESOURCE", `"default-runtime": "podenv"`},
		},
		"daemon.json is not JSON": {
			host: func(f *fake) { f.bound(); f.Link("go"); f.Write("daemon.json", `{`) },
			kind: ErrNoEngine, said: []string{"daemon.json", "correct it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			test.host(f)
			_, _, err := f.ensure(t.Context(), theRepository, nil)
			if !errors.Is(err, test.kind) {
				t.Fatalf("error %v, want of kind %v", err, test.kind)
			}
			for _, part := range test.said {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error does not say %q:\n%v", part, err)
				}
			}
			var host *remedy.Error
			if last := test.said[len(test.said)-1]; !errors.As(err, &host) || !strings.Contains(host.Remedy, last) {
				t.Errorf("remedy does not say %q:\n%v", last, err)
			}
		})
	}
}

func TestEnsureStartsNoDaemonWhereAnotherIsMeant(t *testing.T) {
	for name, meant := range map[string]func(*fake){
		"by DOCKER_HOST":         func(f *fake) { f.t.Setenv("DOCKER_HOST", "unix:///nowhere") },
		"by a socket of others":  func(f *fake) { f.Write("denied", "") },
		"and this is not root's": func(f *fake) { f.uid = 1000 },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			meant(f)
			if _, _, err := f.ensure(t.Context(), theRepository, nil); err == nil {
				t.Error("no error")
			}
			if calls := f.Calls("dockerd"); len(calls) > 0 {
				t.Errorf("calls: %q", calls)
			}
		})
	}
}

func TestStartedDaemonNeedsNothingOfTheCheckout(t *testing.T) {
	f := newFake(t)
	f.bound()
	f.Link("go")
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	f.Script("dockerd", `echo $$ > $F/dockerd.pid; pwd > $F/cwd; env > $F/env; touch $F/serves; exec sleep 60`)
	if _, _, err := f.ensure(t.Context(), theRepository, nil); err != nil {
		t.Fatal(err)
	}
	if cwd, err := os.ReadFile(filepath.Join(f.Dir, "cwd")); err != nil || string(cwd) != "/\n" {
		t.Errorf("dockerd runs in %q (%v), want /", cwd, err)
	}
	env, err := os.ReadFile(filepath.Join(f.Dir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(env), "TMPDIR=") || !strings.Contains(string(env), "HTTPS_PROXY=http://127.0.0.1:1\n") {
		t.Errorf("dockerd's environment is\n%s", env)
	}
	for _, name := range []string{"dockerd.log", runtimeFile} {
		if _, err := os.Stat(filepath.Join(f.state, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestRuntimeThatWasDeletedIsRestored(t *testing.T) {
	for name, test := range map[string]struct {
		info string // JSON of docker info; PATH is where the runtime was
		want bool
	}{
		"where the daemon uses it by default":  {`{"DefaultRuntime": "podenv", "Runtimes": {"podenv": {"path": "PATH"}}}`, true},
		"but not for a daemon that has it not": {`{"DefaultRuntime": "runc", "Runtimes": {"runc": {"path": "runc"}}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.Link("go")
			f.Write("run/docker.pid", f.process("dockerd"))
			path := filepath.Join(f.Dir, "gone", "runtime")
			if err := f.restoreRuntime(t.Context(), theRepository, parseInfo(t, strings.ReplaceAll(test.info, "PATH", path))); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); (err == nil) != test.want {
				t.Errorf("%s: %v, want it to exist: %v", path, err, test.want)
			}
		})
	}
}
