package testimages

import (
	"context"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/gobuild"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

const (
	// Balancer is the image that kind runs before several API servers.
	Balancer = "docker.io/envoyproxy/envoy:v1.36.2"
	// BalancerLabel has the key of podenv's image of that name.
	BalancerLabel = "podenv.dev/balancer"
)

// LoadBalancer gives the engine podenv's image Balancer, unless it has that or Envoy's own, which does as
// well.
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
	key, err := specKey(spec)
	spec.Config = v1.Config{Labels: map[string]string{BalancerLabel: key}}
	return spec, err
}
