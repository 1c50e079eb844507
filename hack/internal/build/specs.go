package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// sampleAPIServer has the version of k8s.io/sample-apiserver for each minor. A spec imports it, and a
// tree lacks it. Few of its versions can be downloaded; these are the nearest to the releases.
var sampleAPIServer = map[string]string{
	"v1.29": "v0.29.15", "v1.30": "v0.30.6", "v1.31": "v0.31.0", "v1.32": "v0.32.3", "v1.33": "v0.33.5",
	"v1.34": "v0.34.2", "v1.35": "v0.35.8", "v1.36": "v0.36.4", "v1.37": "v0.37.1",
}

// specPrograms are the packages, in a tree, of Ginkgo and of the programs that the images of specs have.
var specPrograms = []string{
	"github.com/onsi/ginkgo/v2/ginkgo", "k8s.io/sample-apiserver",
	"./test/images/agnhost", "./test/images/nonewprivs", "./test/images/regression-issue-74839",
	"./test/images/resource-consumer", "./test/images/resource-consumer/consume-cpu",
}

// Specs are the release's own end-to-end specs, and what runs them.
type Specs struct {
	Dir string // has e2e.test, ginkgo and the programs of the images
	Key string // a digest of all inputs
}

// BuildSpecs compiles the end-to-end specs of the tree of r, unless they are up to date.
func BuildSpecs(ctx context.Context, r *Result, step *progress.Step) (*Specs, error) {
	unlock, err := Lock(ctx, r.Dir, step)
	if err != nil {
		return nil, err
	}
	defer unlock()
	t := r.Tree
	stamp, key, err := inputs(ctx, t, runtime.GOARCH, r.Dir, step)
	if err != nil {
		return nil, err
	}
	sample := sampleAPIServer[t.Series.Name]
	if sample == "" {
		return nil, fmt.Errorf("no version of k8s.io/sample-apiserver for %s, which its specs import: add one to sampleAPIServer in hack/internal/build", t.Series.Name)
	}
	s := &Specs{Dir: filepath.Join(r.Dir, "specs"), Key: digest.Of(key, sample, fmt.Sprint(specPrograms))}
	done := filepath.Join(s.Dir, "key")
	if have, err := os.ReadFile(done); err == nil && string(have) == s.Key {
		step.Cached(stamp.version + " as built before")
		return s, nil
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, err
	}
	mod := filepath.Join(s.Dir, "go.mod") // a change of the tree's own would be an edit
	if err := run.Command(ctx, "cp", filepath.Join(t.Dir, "go.mod"), filepath.Join(t.Dir, "go.sum"), s.Dir).Run(); err != nil {
		return nil, err
	}
	step.Now("compiling the specs (minutes the first time)")
	flags := append([]string{"-modfile=" + mod, "-ldflags", stamp.linkerFlags()}, goFlags...)
	for _, args := range [][]string{
		{"mod", "edit", "-require=k8s.io/sample-apiserver@" + sample, mod},
		append(append([]string{"test", "-c", "-o", filepath.Join(s.Dir, "e2e.test")}, flags...), "./test/e2e"),
		append(append([]string{"build", "-o", s.Dir + "/"}, flags...), specPrograms...),
	} {
		if err := run.Command(ctx, "go", args...).Dir(t.Dir).Env(goEnv...).Log(step.Log()).Run(); err != nil {
			return nil, fmt.Errorf("compiling the specs of %s: %w", stamp.version, err)
		}
	}
	return s, renameio.WriteFile(done, []byte(s.Key), 0o644)
}
