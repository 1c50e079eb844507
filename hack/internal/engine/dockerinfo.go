package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"podenv.dev/hack/internal/remedy"
	"podenv.dev/hack/internal/run"
)

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
	// Without a daemon, some versions exit with 0 and others with 1, and the reason is on
	// stdout or stderr.
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
