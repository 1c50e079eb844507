package node

import (
	"context"
	"fmt"
	"regexp"
	"runtime"

	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/run"
)

// Build is a build of one component that a node can be swapped to.
type Build struct {
	Component string
	// Binary is the absolute path of the executable.
	Binary string
	// Image is the archive of an image that has it, for components that run as pods.
	Image string
	// Version is what the build says it is, such as "v1.33.13".
	Version string
	// SHA256 is that of the executable.
	SHA256 string
}

// OpenBuild looks at the executable of a component: whether it starts on this machine, which
// the nodes share, and which version it says it is. It does not fill in Image.
func OpenBuild(ctx context.Context, component, binary string) (Build, error) {
	fail := func(err error) (Build, error) {
		return Build{}, fmt.Errorf("%s is no build of %s: %w", binary, component, err)
	}
	sum, err := digest.File(binary)
	if err != nil {
		return fail(fmt.Errorf("%w: give the path of a file, stock:MINOR or patched:MINOR", err))
	}
	out, err := run.Command(ctx, binary, "--version").Output()
	if ctx.Err() != nil {
		return Build{}, ctx.Err()
	}
	if err != nil {
		return fail(fmt.Errorf("it does not start: give the path of an executable for %s/%s, or build it again: %w", runtime.GOOS, runtime.GOARCH, err))
	}
	version := componentVersion.FindStringSubmatch(out)
	if version == nil {
		return fail(fmt.Errorf("--version printed %q: give the path of a %s", out, component))
	}
	return Build{Component: component, Binary: binary, Version: version[1], SHA256: sum}, nil
}

// NewBuild is a build whose version is known, such as one that was just compiled.
func NewBuild(component, binary, image, version string) (Build, error) {
	sum, err := digest.File(binary)
	if err != nil {
		return Build{}, fmt.Errorf("%s: %w: build it with `podenv build`", component, err)
	}
	return Build{Component: component, Binary: binary, Image: image, Version: version, SHA256: sum}, nil
}

// start runs the build on this machine.
func (b Build) start(ctx context.Context, args ...string) error {
	return run.Command(ctx, b.Binary, args...).Run()
}

// componentVersion is what Kubernetes' components print for --version.
var componentVersion = regexp.MustCompile(`^Kubernetes (v\S+)$`)
