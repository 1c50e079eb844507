package engine

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"podenv.dev/hack/internal/remedy"
)

// explainRefusal adds the likely cause and a remedy to an error that wraps ErrPrivileged, and
// returns other errors as they are. runtime is the path of an OCI runtime that would help, or "".
func (h *host) explainRefusal(info Info, err error, runtime string) error {
	if !errors.Is(err, ErrPrivileged) {
		return err
	}
	if slices.ContainsFunc(info.SecurityOptions, mapsUsers) {
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

func mapsUsers(option string) bool {
	return strings.Contains(option, "name=rootless") || strings.Contains(option, "name=userns")
}
