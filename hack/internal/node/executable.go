package node

import (
	"context"
	"fmt"
	"regexp"

	"podenv.dev/hack/internal/cluster"
)

// binDir is where kind's nodes have the kubelet, kubeadm and kubectl.
const binDir = "/usr/bin/"

// executable changes a component that does not keep running: kubeadm and kubectl.
type executable struct{ *target }

var versionArgs = map[string][]string{"kubeadm": {"version"}, "kubectl": {"version", "--client"}}

// printedVersion matches the version in what a component prints.
var printedVersion = regexp.MustCompile(`v[0-9]+\.[0-9]+\.[0-9]+[-+.0-9A-Za-z]*`)

func (e *executable) state(ctx context.Context) (s cluster.State, err error) {
	if s.SHA256, err = e.fileSum(ctx, e.path()); err != nil {
		return s, err
	}
	out, err := e.exec(ctx, append([]string{e.path()}, versionArgs[e.name]...)...)
	s.Version = printedVersion.FindString(out)
	return s, err
}

func (e *executable) path() string                     { return binDir + e.name }
func (e *executable) files() []string                  { return []string{e.path()} }
func (e *executable) apply(ctx context.Context) error  { return e.replace(ctx, newSuffix, e.path()) }
func (e *executable) revert(ctx context.Context) error { return e.replace(ctx, oldSuffix, e.path()) }
func (e *executable) cleanUp(ctx context.Context) error {
	return e.removeCopies(ctx, e.files(), newSuffix, oldSuffix)
}
func (e *executable) log(context.Context) string { return "" }

func (e *executable) stage(ctx context.Context, ch change, _ cluster.State) error {
	if ch.original {
		return e.stageOriginals(ctx, e.path())
	}
	return e.stageBinary(ctx, ch.binary)
}

func (e *executable) waitServing(ctx context.Context, want cluster.State) error {
	have, err := e.state(ctx)
	if err == nil && have.SHA256 != want.SHA256 {
		err = fmt.Errorf("%s has SHA-256 %s, want %s", e.path(), have.SHA256, want.SHA256)
	}
	return err
}
