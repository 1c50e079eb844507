package node

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"strings"

	"podenv.dev/hack/internal/cluster"
)

// Suffixes of the copies of a file, in the same folder, that a change makes.
const (
	newSuffix      = "new"      // the staged file
	oldSuffix      = "old"      // the file before the change
	originalSuffix = "original" // the file before the first operation
)

// copyPath returns the path of a copy of file. Its name begins with a dot: the kubelet ignores such manifests.
func copyPath(file, suffix string) string {
	dir, base := path.Split(file)
	return dir + "." + base + "." + suffix
}

func (t *target) write(ctx context.Context, r io.Reader, path, mode string) error {
	return t.Docker(ctx, "exec", "--interactive", t.node, "install", "--mode="+mode, "/dev/stdin", path).Stdin(r).Run()
}

// link makes name a hard link to file. It keeps the content that file has now: a change
// renames another file over file.
func (t *target) link(ctx context.Context, file, name string) error {
	_, err := t.exec(ctx, "ln", "--force", file, name)
	return err
}

// moveScript renames $1 to $2, $3 to $4 and so on. mv refuses if both are the same file.
const moveScript = `while [ $# -gt 0 ]; do [ "$1" -ef "$2" ] || mv --force "$1" "$2"; shift 2; done`

func (t *target) replace(ctx context.Context, suffix, file string) error {
	_, err := t.exec(ctx, "sh", "-ec", moveScript, "sh", copyPath(file, suffix), file)
	return err
}

func (t *target) removeCopies(ctx context.Context, files []string, suffixes ...string) error {
	var copies []string
	for _, file := range files {
		for _, suffix := range suffixes {
			copies = append(copies, copyPath(file, suffix))
		}
	}
	if len(copies) == 0 {
		return nil
	}
	_, err := t.exec(ctx, append([]string{"rm", "--force"}, copies...)...)
	return err
}

// stageOriginals stages files as they were before the first operation.
func (t *target) stageOriginals(ctx context.Context, files ...string) error {
	for _, file := range files {
		if err := t.link(ctx, file, copyPath(file, oldSuffix)); err != nil {
			return err
		}
		if err := t.link(ctx, copyPath(file, originalSuffix), copyPath(file, newSuffix)); err != nil {
			return fmt.Errorf("what was there before the first operation is gone: recreate the cluster with `podenv up --recreate`: %w", err)
		}
	}
	return nil
}

// stageFile stages the content of r for file, and keeps the file in use.
func (t *target) stageFile(ctx context.Context, r io.Reader, file, mode string) error {
	if err := t.write(ctx, r, copyPath(file, newSuffix), mode); err != nil {
		return err
	}
	return t.link(ctx, file, copyPath(file, oldSuffix))
}

func (t *target) stageBinary(ctx context.Context, binary string) error {
	f, err := os.Open(binary)
	if err != nil {
		return err
	}
	defer f.Close()
	return t.stageFile(ctx, f, binDir+t.name, "0755")
}

func (t *target) fileSum(ctx context.Context, file string) (string, error) {
	out, err := t.exec(ctx, "sha256sum", file)
	if err != nil {
		return "", err
	}
	sum, _, _ := strings.Cut(out, " ")
	if len(sum) != 64 {
		return "", fmt.Errorf("sha256sum printed %q", out)
	}
	return sum, nil
}

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
func (e *executable) log(context.Context) string       { return "" }

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
