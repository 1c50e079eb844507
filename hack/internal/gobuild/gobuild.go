// Package gobuild compiles the static programs that podenv puts into images and on hosts.
package gobuild

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// Program is a main package.
type Program struct {
	Package string // as the go command takes it: "./hack/images/pause"
	Dir     string // the folder of its module in the repository; empty for podenv's module
	ModFile string // replaces the module's go.mod, if not empty
	Tags    string // build tags, separated by commas
	Arch    string // Go's name of the architecture; empty means this machine's
	// Cgo compiles C code with the host's compiler, and links the host's libraries statically.
	Cgo bool
}

// Name is the name of what is built for arch: with the architecture unless it is this machine's.
func Name(name, arch string) string {
	if arch == runtime.GOARCH {
		return name
	}
	return name + "-" + arch
}

// one lets one go command run at a time. Each uses all processors, and two would both compile what their
// programs share: the go command's cache has only what is done.
var one sync.Mutex

// Static compiles p into the file out, for Linux, without symbols. The go command decides
// whether out is up to date.
func Static(ctx context.Context, l layout.Layout, p Program, out string, step *progress.Step) error {
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	// Next to out, so that the go command can rename the linked file.
	tmp, err := os.MkdirTemp(filepath.Dir(out), ".go-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	ldflags, cgo := "-s -w", "CGO_ENABLED=0"
	if p.Cgo {
		ldflags, cgo = ldflags+" -linkmode=external -extldflags=-static", "CGO_ENABLED=1"
	}
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=" + ldflags, "-tags=" + p.Tags, "-o", out}
	if p.ModFile != "" {
		args = append(args, "-modfile="+p.ModFile)
	}
	one.Lock()
	defer one.Unlock()
	err = run.Command(ctx, "go", append(args, p.Package)...).Dir(filepath.Join(l.Root, p.Dir)).
		Env("GOWORK=off", "GOFLAGS=-mod=readonly", cgo, "GOOS=linux", "GOARCH="+cmp.Or(p.Arch, runtime.GOARCH), "GOTMPDIR="+tmp).Log(step.Log()).Run()
	if err != nil {
		return fmt.Errorf("compiling %s: %w", p.Package, err)
	}
	return nil
}
