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

// askTimeout is how long a daemon that serves may take to say so.
const askTimeout = 20 * time.Second

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

// Reasons for which no engine serves, in the chain of errors that have ErrNoEngine.
var (
	errNoCommand  = errors.New("the docker command is not installed")
	errNotServing = errors.New("no daemon serves")
)

// CanStart reports whether err is of the kind that starting a daemon here cures.
func CanStart(err error) bool {
	return errors.Is(err, errNoCommand) || errors.Is(err, errNotServing)
}

// queryInfo asks the daemon that the docker command talks to. ErrNoEngine is in
// the chain of every error.
func queryInfo(ctx context.Context) (Info, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if _, err := exec.LookPath("docker"); err != nil {
		return Info{}, remedy.New(fmt.Errorf("%w: %w", ErrNoEngine, errNoCommand), "`podenv up` installs it if it has permission")
	}
	// The command exits with 0 or 1 without a daemon, by its version, and says why on
	// either stream.
	out, err := run.Command(ctx, "docker", "info", "--format", "{{json .}}").Output()
	var info Info
	if jsonErr := json.Unmarshal([]byte(out), &info); jsonErr == nil && info.ServerVersion != "" {
		return info, nil
	}
	said := strings.Join(info.ServerErrors, "; ")
	if said == "" && err != nil {
		said = err.Error()
	}
	return Info{}, notServing(said, elsewhere(ctx))
}

// elsewhere is the endpoint that the docker command was told to use, by DOCKER_HOST
// or a context, or "" for that of a daemon which this host's init or podenv starts.
func elsewhere(ctx context.Context) string {
	if host := os.Getenv("DOCKER_HOST"); host != "" {
		return "DOCKER_HOST=" + host
	}
	host, err := run.Command(ctx, "docker", "context", "inspect", "--format", "{{.Endpoints.docker.Host}}").Output()
	if err != nil || host == "" || strings.HasSuffix(host, ":///var/run/docker.sock") || strings.HasSuffix(host, ":///run/docker.sock") {
		return ""
	}
	return "the docker context's " + host
}

// notServing tells apart why there is no answer by what the docker command said.
func notServing(said, endpoint string) error {
	switch {
	case remedy.Says(said, "permission denied while trying to connect", "connect: permission denied"):
		return remedy.New(
			fmt.Errorf("%w: this user may not talk to Docker's daemon: %s", ErrNoEngine, said),
			"`sudo usermod -aG docker $USER` and log in again, or run podenv as root",
		)
	case said == "":
		return remedy.New(
			fmt.Errorf("%w: `docker info` does not answer as Docker does", ErrNoEngine),
			"put Docker's own docker command first in PATH",
		)
	case endpoint != "":
		return remedy.New(
			fmt.Errorf("%w: no daemon serves at %s: %s", ErrNoEngine, endpoint, said),
			"start it there, or go back to this host's: unset DOCKER_HOST, `docker context use default`",
		)
	}
	return remedy.New(fmt.Errorf("%w: %w: %s", ErrNoEngine, errNotServing, said), "`podenv up` starts one if it has permission")
}
