package proof

import (
	"context"
	"fmt"
	"strings"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/doctor"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/source"
)

// testCluster is the cluster of the proofs: they do not use the one of a developer.
var testCluster = layout.MustFind().UniqueName("podenv-test")

// fileSystems are the packages with which tests of pkg/kubelet/envfile make file systems.
var fileSystems = []string{"xfsprogs", "btrfs-progs"}

// host is this host, with missing packages installed and checked by podenv doctor.
var host = &fixture[struct{}]{name: "setup", make: func(ctx context.Context) (none struct{}, err error) {
	if err := steps.Packages(ctx, append(fileSystems, "shellcheck")...); err != nil {
		return none, err
	}
	if _, err := steps.Engine(ctx); err != nil {
		return none, err
	}
	var broken []string
	for _, f := range doctor.Examine(ctx, repo) {
		if f.Status == "fail" {
			broken = append(broken, fmt.Sprintf("%s: %s: %s", f.Check, f.Found, f.Remedy))
		}
	}
	if len(broken) > 0 {
		return none, fmt.Errorf("podenv doctor finds:\n%s", strings.Join(broken, "\n"))
	}
	return none, nil
}}

// built has everything up to the node image. Its steps have their own progress lines.
var built = &fixture[*pipeline.Result]{name: "build", make: func(ctx context.Context) (*pipeline.Result, error) {
	return steps.NodeImage(ctx)
}}

func needBuild(c *check) {
	host.need(c)
	built.need(c)
}

var stock = &fixture[*source.Tree]{name: "the stock tree", make: func(ctx context.Context) (*source.Tree, error) {
	return source.Assemble(ctx, repo, steps.Series, source.Options{Stock: true}, nil)
}}

func needStock(c *check) {
	needBuild(c)
	stock.need(c)
}

// tarball is the path of the server tarball.
var tarball = &fixture[string]{name: "server tarball", make: func(ctx context.Context) (string, error) {
	return build.ServerTarball(ctx, built.value.Build, nil)
}}

func needTarball(c *check) {
	needBuild(c)
	tarball.need(c)
}

// gatesOn is the cluster that the suites run on, with the gates of the series on.
var gatesOn = &fixture[*cluster.Cluster]{name: "cluster", make: func(ctx context.Context) (*cluster.Cluster, error) {
	gates, err := steps.Gates()
	if err != nil {
		return nil, err
	}
	return steps.Cluster(ctx, built.value, cluster.Config{Name: testCluster, Workers: 1, Gates: gates, Recreate: true})
}}

func needCluster(c *check) {
	needBuild(c)
	gatesOn.need(c)
}

// components are those of other builds and minors. Their steps have their own progress lines.
var components = &fixture[struct{}]{name: "components of other releases", make: func(ctx context.Context) (none struct{}, err error) {
	return none, buildComponents(ctx)
}}

func needComponents(c *check) {
	needBuild(c)
	components.need(c)
}
