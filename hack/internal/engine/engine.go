// Package engine provides a container engine that runs privileged containers, as kind's nodes
// are. The engine is Docker: the one that already runs, or one that this package installs and
// starts, with hack/podenv-oci-runtime as its runtime if the host cannot grant every capability.
//
//	serves? ── no ─► packages ─► start (systemd, or dockerd in its own session)
//	   │ yes                        │
//	   └──────────► privileged container? ─► Engine
package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/remedy"
	"podenv.dev/hack/internal/run"
)

// Engine is a container engine that serves and runs privileged containers.
type Engine struct{ Info Info }

// Ensure returns the container engine of this host. It installs Docker if it is missing, and
// starts it if it does not run. Docker keeps running after this process has ended. Errors that
// tell the user what to do about the host wrap ErrNoEngine or ErrPrivileged.
func Ensure(ctx context.Context, l layout.Layout, step *progress.Step) (*Engine, error) {
	h := thisHost()
	info, started, err := h.ensure(ctx, l, step)
	if err != nil {
		return nil, err
	}
	if err := h.restoreRuntime(ctx, l, info); err != nil {
		return nil, err
	}
	cached, err := cachedProbe(ctx, l, h.daemonKey(info), step)
	if err != nil {
		return nil, remedy.Explain(h.explainRefusal(info, err, h.offerRuntime(ctx, l, info)))
	}
	if cached && !started {
		step.Cached("Docker " + info.ServerVersion + " serves")
	}
	return &Engine{info}, nil
}

// Find returns the container engine that runs now. It does not install, start or probe one. Its
// errors wrap ErrNoEngine.
func Find(ctx context.Context) (*Engine, error) {
	info, err := queryInfo(ctx)
	if err != nil {
		return nil, err
	}
	return &Engine{info}, nil
}

// Docker prepares the docker command with args.
func (e *Engine) Docker(ctx context.Context, args ...string) *run.Cmd {
	return run.Command(ctx, "docker", args...)
}

// Privileged starts a privileged container and a privileged process in it, as kind does, and
// removes them. If the engine refuses one, the error wraps ErrPrivileged.
func (e *Engine) Privileged(ctx context.Context, l layout.Layout) error {
	return remedy.Explain(thisHost().explainRefusal(e.Info, probe(ctx, l, nil), ""))
}

// ensure starts the engine if it does not run, and reports whether it did so.
func (h *host) ensure(ctx context.Context, l layout.Layout, step *progress.Step) (info Info, started bool, err error) {
	step.Now("asking Docker")
	info, err = queryInfo(ctx)
	if err == nil {
		return info, false, nil
	}
	if !CanStart(err) {
		return Info{}, false, err
	}
	if err := h.installDocker(ctx, step); err != nil {
		return Info{}, false, fmt.Errorf("%w: %w", ErrNoEngine, err)
	}
	if err := h.start(ctx, l, step); err != nil {
		return Info{}, false, err
	}
	info, err = queryInfo(ctx)
	return info, true, err
}

// Problems of a host. The errors of each kind wrap it.
var (
	// ErrNoEngine: no container engine runs, and none could be started.
	ErrNoEngine = errors.New("no container engine")
	// ErrPrivileged: the engine runs, but refuses privileged containers such as kind's nodes.
	ErrPrivileged = errors.New("the container engine refuses privileged containers")
)

func remedyOf(log string) string {
	switch log := strings.ToLower(log); {
	case remedy.ContainsAny(log, "no space left on device"):
		return remedy.ForDisk
	case remedy.ContainsAny(log, "iptables"):
		return "this kernel may lack what one of Debian's two iptables needs: try `update-alternatives --set iptables /usr/sbin/iptables-legacy`, or /usr/sbin/iptables-nft where that one is set"
	case remedy.ContainsAny(log, "pid file found", "address already in use"):
		return "another daemon is there: stop it, or point DOCKER_HOST to it"
	case remedy.ContainsAny(log, "cgroup isn't mounted", "cgroup mountpoint does not exist"):
		return "no cgroups are mounted: `apt-get install cgroupfs-mount && cgroupfs-mount` as root, or start this machine with /sys/fs/cgroup"
	}
	return "fix what the log says, and try again"
}

// explainRefusal adds the likely cause and a remedy to an error that wraps ErrPrivileged, and
// returns other errors as they are. runtime is the path of an OCI runtime that would help, or "".
func (h *host) explainRefusal(info Info, err error, runtime string) error {
	if !errors.Is(err, ErrPrivileged) {
		return err
	}
	if remedy.ContainsAny(strings.Join(info.SecurityOptions, " "), "name=rootless", "name=userns") {
		return remedy.New(
			fmt.Errorf("%w\n  this daemon maps users (rootless, or userns-remap)", err),
			"use one that runs as root and does not, see `docker context ls`",
		)
	}
	missing, missingErr := h.missing(h.daemonPID())
	if missingErr != nil || len(missing) == 0 {
		return remedy.New(err, "use a host, or a Docker, that allows privileged containers: kind's nodes are such")
	}
	err = fmt.Errorf("%w\n  this host lacks %s", err, strings.Join(missing, ", "))
	if info.DefaultRuntime == runtimeName {
		return remedy.New(err, "see what dockerd says, in "+filepath.Join(h.state, "dockerd.log")+" where podenv started it")
	}
	err = fmt.Errorf("%w, and the dockerd that serves was not started to cope with that", err)
	hint := "stop it, and `podenv up` as root starts one that is"
	if runtime != "" {
		hint += "; or " + h.remedyConfig(runtime)
	}
	return remedy.New(err, hint)
}

// infoTimeout limits how long `docker info` may take.
const infoTimeout = 20 * time.Second

// Info is the part of `docker info` that the harness reads.
type Info struct {
	ID             string
	ServerVersion  string
	DefaultRuntime string
	Runtimes       map[string]struct {
		Path string `json:"path"`
	}
	DockerRootDir   string
	Driver          string // storage driver
	SecurityOptions []string
	ServerErrors    []string
}

// Causes of ErrNoEngine. The errors that wrap it may wrap one of these, too.
var (
	errNoCommand  = errors.New("the docker command is not installed")
	errNotServing = errors.New("no daemon serves")
)

// CanStart reports whether starting a daemon on this host would fix err.
func CanStart(err error) bool {
	return errors.Is(err, errNoCommand) || errors.Is(err, errNotServing)
}

// queryInfo runs `docker info`. All errors wrap ErrNoEngine.
func queryInfo(ctx context.Context) (Info, error) {
	ctx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	if _, err := exec.LookPath("docker"); err != nil {
		return Info{}, remedy.New(fmt.Errorf("%w: %w", ErrNoEngine, errNoCommand), "`podenv up` installs it if it has permission")
	}
	// Without a daemon, some versions exit with 0 and others with 1, and the reason is on stdout or stderr.
	out, err := run.Command(ctx, "docker", "info", "--format", "{{json .}}").Output()
	var info Info
	if jsonErr := json.Unmarshal([]byte(out), &info); jsonErr == nil && info.ServerVersion != "" {
		return info, nil
	}
	reason := strings.Join(info.ServerErrors, "; ")
	if reason == "" && err != nil {
		reason = err.Error()
	}
	return Info{}, notServing(reason, otherEndpoint(ctx))
}

// otherEndpoint returns the endpoint that DOCKER_HOST or a docker context sets, or "" if that is
// the endpoint of the daemon that this host's init or podenv starts.
func otherEndpoint(ctx context.Context) string {
	if host := os.Getenv("DOCKER_HOST"); host != "" {
		return "DOCKER_HOST=" + host
	}
	host, err := run.Command(ctx, "docker", "context", "inspect", "--format", "{{.Endpoints.docker.Host}}").Output()
	if err != nil || host == "" || strings.HasSuffix(host, ":///var/run/docker.sock") || strings.HasSuffix(host, ":///run/docker.sock") {
		return ""
	}
	return "the docker context's " + host
}

func notServing(reason, endpoint string) error {
	switch {
	case remedy.ContainsAny(reason, "permission denied while trying to connect", "connect: permission denied"):
		return remedy.New(
			fmt.Errorf("%w: this user may not talk to Docker's daemon: %s", ErrNoEngine, reason),
			"`sudo usermod -aG docker $USER` and log in again, or run podenv as root",
		)
	case reason == "":
		return remedy.New(
			fmt.Errorf("%w: `docker info` does not answer as Docker does", ErrNoEngine),
			"put Docker's own docker command first in PATH",
		)
	case endpoint != "":
		return remedy.New(
			fmt.Errorf("%w: no daemon serves at %s: %s", ErrNoEngine, endpoint, reason),
			"start it there, or go back to this host's: unset DOCKER_HOST, `docker context use default`",
		)
	}
	return remedy.New(fmt.Errorf("%w: %w: %s", ErrNoEngine, errNotServing, reason), "`podenv up` starts one if it has permission")
}
