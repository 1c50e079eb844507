package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/remedy"
)

// ErrNotOurs is wrapped by the error of Pull for an image that is no node image of podenv for this
// machine.
var ErrNotOurs = errors.New("no node image of podenv for this machine")

// Pull lets the engine pull the published node image ref, unless it has it, and returns the version
// of Kubernetes in it.
func Pull(ctx context.Context, e *engine.Engine, ref string, step *progress.Step) (version string, err error) {
	if !hasImage(ctx, e, ref) {
		step.Now("pulling %s", ref)
		if err := e.Docker(ctx, "pull", ref).Log(step.Log()).Run(); err != nil {
			return "", remedy.New(fmt.Errorf("pulling %s: %w", ref, err), "check the name and `docker login`; Docker takes a registry without TLS only on localhost, or as one of its insecure-registries")
		}
	}
	out, err := e.Docker(ctx, "image", "inspect", "--format", `{{.Architecture}} {{index .Config.Labels "`+VersionLabel+`"}}`, ref).Output()
	if err != nil {
		return "", err
	}
	arch, version, _ := strings.Cut(out, " ")
	switch {
	case version == "":
		return "", fmt.Errorf("%s: %w: it lacks the label %s; `podenv publish` makes such images", ref, ErrNotOurs, VersionLabel)
	case arch != runtime.GOARCH:
		return "", fmt.Errorf("%s: %w: it is for %s, and this is %s", ref, ErrNotOurs, arch, runtime.GOARCH)
	}
	return version, nil
}
