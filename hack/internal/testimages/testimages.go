// Package testimages packs the images that test pods run: a shell with the usual
// tools, and a program that prints its environment, with no other files.
package testimages

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/gobuild"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/test/images"
)

// Build returns the docker-archives of the images, Busybox first. It packs those whose inputs have changed.
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
	named := envdump(images.EnvdumpNamed, program, "nobody")
	named.Files = append(named.Files, image.MinimalFiles()...)
	cached := true
	for _, spec := range []image.Spec{
		shell,
		envdump(images.Envdump, program, ""),
		envdump(images.EnvdumpNonroot, program, "65532"),
		envdump(images.EnvdumpGroup, program, "1000:2000"),
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

//go:embed printenv.awk
var printenv []byte

// busybox returns the image with a shell, from the files of Debian's busybox-static.
func busybox(packaged []image.File) (image.Spec, error) {
	var program, copyright []byte
	for _, f := range packaged {
		switch f.Path {
		case "/usr/bin/busybox":
			program = f.Data
		case "/usr/share/doc/busybox-static/copyright":
			copyright = f.Data
		}
	}
	if program == nil {
		return image.Spec{}, errors.New("the package busybox-static has no busybox in /bin")
	}
	applets, err := appletsOf(program)
	if err != nil {
		return image.Spec{}, err
	}
	files := append(image.MinimalFiles(),
		image.File{Path: "/bin/busybox", Mode: 0o755, Data: program},
		image.File{Path: "/usr/share/doc/busybox-static/copyright", Mode: 0o644, Data: copyright},
		image.File{Path: "/usr/bin/env", Link: "/bin/busybox"},
		image.File{Path: "/root", Mode: fs.ModeDir | 0o700},
	)
	for _, applet := range applets {
		if applet != "busybox" { // the program itself
			files = append(files, image.File{Path: "/bin/" + applet, Link: "busybox"})
		}
	}
	if !slices.Contains(applets, "printenv") {
		files = append(files, image.File{Path: "/bin/printenv", Mode: 0o755, Data: printenv})
	}
	return image.Spec{Name: images.Busybox, Files: files, Config: v1.Config{Cmd: []string{"sh"}}}, nil
}

// appletsOf returns the names under which program, a busybox, can be called. It reads the
// program's table of names: they are sorted, each ends with a NUL byte, and so does the table.
// `busybox --list` prints the same, but a file that this process has just written cannot
// be executed ("text file busy") while another goroutine starts a command.
func appletsOf(program []byte) ([]string, error) {
	const start = "\x00[\x00[[\x00"
	if at := bytes.Index(program, []byte(start)); at >= 0 {
		table, _, ended := bytes.Cut(program[at+1:], []byte("\x00\x00"))
		applets := strings.Split(string(table), "\x00")
		if ended && slices.Contains(applets, "sh") {
			return applets, nil
		}
	}
	return nil, errors.New("busybox has no table of its applets that starts with [ and [[ and has sh: go back to the version of busybox-static that was pinned")
}

const (
	// Balancer is the image that kind runs before several API servers.
	Balancer = "docker.io/envoyproxy/envoy:v1.36.2"
	// BalancerLabel has the key of podenv's image of that name.
	BalancerLabel = "podenv.dev/balancer"
)

// LoadBalancer gives the engine podenv's image Balancer, unless it has that or Envoy's own, which does as well.
func LoadBalancer(ctx context.Context, l layout.Layout, e *engine.Engine, step *progress.Step) error {
	packaged, err := debian.Files(ctx, l, runtime.GOARCH, step, "busybox-static")
	if err != nil {
		return err
	}
	spec, err := balancer(ctx, l, packaged, step)
	if err != nil {
		return err
	}
	key := spec.Config.Labels[BalancerLabel]
	have, err := e.Docker(ctx, "image", "inspect", "--format", `{{index .Config.Labels "`+BalancerLabel+`"}}`, Balancer).Output()
	if err == nil && (have == key || have == "") {
		step.Cached("as it was")
		return nil
	}
	archive, _, err := image.Cached(l.Cache("testimages"), "balancer", key, spec.Write)
	if err != nil {
		return err
	}
	return e.Docker(ctx, "load", "--input", archive).Log(step.Log()).Run()
}

// balancer returns hack/images/balancer as envoy, and the shell and commands that kind runs beside it.
func balancer(ctx context.Context, l layout.Layout, packaged []image.File, step *progress.Step) (image.Spec, error) {
	program := filepath.Join(l.Cache("programs"), "balancer")
	if err := gobuild.Static(ctx, l, gobuild.Program{Package: "./hack/images/balancer"}, program, step); err != nil {
		return image.Spec{}, err
	}
	spec, err := busybox(packaged)
	if err != nil {
		return spec, err
	}
	spec.Name = Balancer
	spec.Files = append(spec.Files,
		image.File{Path: "/bin/envoy", Mode: 0o755, Source: program},
		image.File{Path: "/bin/bash", Mode: 0o755, Data: []byte("#!/bin/sh\nexec sh \"$@\"\n")})
	key, err := spec.Key()
	spec.Config = v1.Config{Labels: map[string]string{BalancerLabel: key}}
	return spec, err
}
