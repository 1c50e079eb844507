package doctor

import (
	"errors"
	"testing"

	"podenv.dev/hack/internal/engine"
)

func TestEngineThatDoesNotServe(t *testing.T) {
	const cannot = `echo 'Cannot connect to the Docker daemon' >&2; exit 1`
	const sudo = `test "$2" = true`
	for name, test := range map[string]struct {
		commands              map[string]string
		host                  string // DOCKER_HOST
		status, found, remedy string
	}{
		"is for podenv up to start": {
			map[string]string{"docker": cannot, "apt-get": "", "sudo": sudo}, "", Warn, "none serves", "podenv up",
		},
		"is for podenv up to install": {
			map[string]string{"apt-get": "", "sudo": sudo}, "", Warn, "none serves", "podenv up",
		},
		"is for the user to install where podenv cannot": {
			nil, "", Fail, "docker command is not installed", "apt-get install docker.io",
		},
		"is for the user to start where it is another host's": {
			map[string]string{"docker": cannot, "apt-get": "", "sudo": sudo}, "tcp://127.0.0.1:1", Fail, "DOCKER_HOST=tcp://127.0.0.1:1", "unset DOCKER_HOST",
		},
	} {
		t.Run(name, func(t *testing.T) {
			commands(t, test.commands)
			t.Setenv("DOCKER_HOST", test.host)
			e, err := engine.Find(t.Context())
			if err == nil {
				t.Fatal("an engine serves")
			}
			docker(t.Context(), e, err).want(t, test.status, test.found, test.remedy)
			privileged(t.Context(), theRepository, e).want(t, Warn, "not tried", "podenv up")
		})
	}
}

func TestEngineThatServes(t *testing.T) {
	for name, test := range map[string]struct{ driver, status, remedy string }{
		"with overlay2":                   {"overlay2", OK, ""},
		"with containerd's snapshotter":   {"overlayfs", OK, ""},
		"with a driver that copies files": {"vfs", Warn, "overlay2"},
	} {
		t.Run(name, func(t *testing.T) {
			info := engine.Info{ServerVersion: "20.10.24", Driver: test.driver, DockerRootDir: "/data"}
			storage("container engine", info).want(t, test.status, "Docker 20.10.24", test.remedy)
		})
	}
}

func TestEngineThatRefusesPrivilegedContainers(t *testing.T) {
	commands(t, map[string]string{"docker": `case $1 in
info) echo '{"ServerVersion": "20.10.24", "SecurityOptions": ["name=rootless"]}';;
run) echo unable to apply caps >&2; exit 125;;
esac`, "go": `while test "$1" != -o; do shift; done; : > "$2"`})
	e, err := engine.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	privileged(t.Context(), theRepository, e).want(t, Fail, "unable to apply caps", "docker context ls")
}

func TestCapabilities(t *testing.T) {
	for name, test := range map[string]struct {
		missing               []string
		status, found, remedy string
	}{
		"of a full host":         {nil, OK, "all", ""},
		"of a bounded host":      {[]string{"CAP_SYS_RESOURCE"}, OK, "lacks CAP_SYS_RESOURCE; podenv copes", ""},
		"that nodes cannot miss": {[]string{"CAP_SYS_ADMIN", "CAP_SYS_RESOURCE"}, Fail, "lacks CAP_SYS_ADMIN", "start this machine"},
	} {
		t.Run(name, func(t *testing.T) { judgeCapabilities(test.missing).want(t, test.status, test.found, test.remedy) })
	}
}

func TestOtherFailuresGetNoRemedy(t *testing.T) {
	if engine.CanStart(errors.New("other")) {
		t.Error("CanStart of any error")
	}
}

func TestRunningNodes(t *testing.T) {
	for name, test := range map[string]struct{ docker, status, found, remedy string }{
		"of two clusters": {"printf 'b\na\nb\n'", OK, "3, of kind's clusters: a, b", ""},
		"none":            {"", OK, "none", ""},
		"unknown":         {"echo no daemon >&2; exit 1", Fail, "no daemon", "fix"},
	} {
		t.Run(name, func(t *testing.T) {
			commands(t, map[string]string{"docker": test.docker})
			running(t.Context(), &engine.Engine{}).want(t, test.status, test.found, test.remedy)
		})
	}
	running(t.Context(), nil).want(t, OK, "no engine serves", "")
}
