package testimages

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/gobuild"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

// References of the images, for pods. No registry serves them: they are loaded into the
// nodes.
const (
	// Busybox has a shell and the usual tools, from Debian's busybox-static. It runs as
	// root unless told otherwise.
	Busybox = "podenv.dev/busybox:1"
	// Envdump has one static program and nothing else, no shell in particular.
	// It prints its environment as JSON; `envdump serve` then waits for SIGTERM.
	Envdump = "podenv.dev/envdump:1"
	// EnvdumpNonroot is Envdump run as user 65532, which the image sets as a number.
	EnvdumpNonroot = "podenv.dev/envdump-nonroot:1"
	// EnvdumpGroup is Envdump run as user 1000 and group 2000, both set as numbers.
	EnvdumpGroup = "podenv.dev/envdump-group:1"
	// EnvdumpNamed is Envdump run as the user nobody, 65534, which only the image's
	// /etc/passwd defines.
	EnvdumpNamed = "podenv.dev/envdump-named:1"
)

// Build returns the docker-archives of the images, Busybox first. It packs those whose
// inputs have changed.
func Build(ctx context.Context, l layout.Layout, step *progress.Step) (tars []string, err error) {
	packaged, err := debian.Files(ctx, l, runtime.GOARCH, step, "busybox-static")
	if err != nil {
		return nil, fmt.Errorf("test image busybox: %w", err)
	}
	return pack(ctx, l, packaged, step)
}

// pack is Build with the files of the package busybox-static.
func pack(ctx context.Context, l layout.Layout, packaged []image.File, step *progress.Step) (tars []string, err error) {
	shell, err := busybox(packaged)
	if err != nil {
		return nil, fmt.Errorf("test image busybox: %w", err)
	}
	program := filepath.Join(l.Cache("programs"), "envdump")
	if err := gobuild.Static(ctx, l, gobuild.Program{Package: "./test/images/envdump"}, program, step); err != nil {
		return nil, fmt.Errorf("test image envdump: %w", err)
	}
	named := envdump(EnvdumpNamed, program, "nobody")
	named.Files = append(named.Files, image.MinimalFiles()...)
	cached := true
	for _, spec := range []image.Spec{
		shell,
		envdump(Envdump, program, ""),
		envdump(EnvdumpNonroot, program, "65532"),
		envdump(EnvdumpGroup, program, "1000:2000"),
		named,
	} {
		name, _, _ := strings.Cut(path.Base(spec.Name), ":")
		out, packed, err := spec.Cached(l.Cache("testimages"), name)
		if err != nil {
			return nil, fmt.Errorf("test image %s: %w", name, err)
		}
		cached = cached && !packed
		tars = append(tars, out)
	}
	if cached {
		step.Cached("as packed before")
	}
	return tars, nil
}

// envdump returns an image that runs program, built from test/images/envdump, as user.
func envdump(name, program, user string) image.Spec {
	return image.Spec{
		Name:   name,
		Files:  []image.File{{Path: "/envdump", Mode: 0o755, Source: program}},
		Config: v1.Config{Entrypoint: []string{"/envdump"}, Env: []string{"PATH=/"}, User: user},
	}
}
