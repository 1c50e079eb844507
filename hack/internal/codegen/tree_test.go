package codegen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/semver"
)

// realTree clones the assembled tree that PODENV_TREE names, without its patches unless patched. The tests
// that use it run Kubernetes' own generators, for minutes.
func realTree(t *testing.T, patched bool) Options {
	t.Helper()
	tree := os.Getenv("PODENV_TREE")
	if tree == "" {
		t.Skip("PODENV_TREE names no assembled tree: `podenv tree --stock` makes one")
	}
	release := os.Getenv("PODENV_RELEASE")
	if release == "" {
		release = "v1.33.13"
	}
	base := git(t, tree, "rev-list", "--max-parents=0", "HEAD")
	dir := filepath.Join(t.TempDir(), "tree")
	git(t, tree, "clone", "--quiet", "--shared", "--no-checkout", tree, dir)
	git(t, dir, "config", "core.autocrlf", "false")
	at := base
	if patched {
		at = git(t, tree, "rev-parse", "HEAD")
	}
	git(t, dir, "checkout", "--quiet", "--detach", at)
	return Options{Tree: dir, Release: release, Base: base, Work: t.TempDir()}
}

func TestAllGeneratorsLeaveTheReleaseAsItIs(t *testing.T) {
	allGeneratorsChangeNothing(t, realTree(t, false))
}

// A tree was assembled with the generators of what its patches reach.
func TestAllGeneratorsMakeWhatATreeHas(t *testing.T) {
	allGeneratorsChangeNothing(t, realTree(t, true))
}

func allGeneratorsChangeNothing(t *testing.T, o Options) {
	t.Helper()
	o.All = true
	if err := Generate(t.Context(), o, nil); err != nil {
		t.Fatal(err)
	}
	if got := git(t, o.Tree, "status", "--porcelain"); got != "" {
		t.Errorf("all generators together make other files:\n%s", got)
	}
}

func TestReachedPackagesAreAllThatChange(t *testing.T) {
	o := realTree(t, false)
	addField(t, o.Tree)
	write(t, o.Tree, map[string]string{"api/discovery/apis__batch__v1.json": ""}) // as if the group were new
	if err := Generate(t.Context(), o, nil); err != nil {
		t.Fatal(err)
	}
	if got := git(t, o.Tree, "status", "--porcelain", "api/discovery"); got != "" {
		t.Errorf("api/discovery is not what an API server of the release serves:\n%s", got)
	}
	written := []string{
		"api/openapi-spec/v3/apis__batch__v1_openapi.json",
		"pkg/apis/core/zz_generated.deepcopy.go",
		"pkg/generated/openapi/zz_generated.openapi.go",
		"staging/src/k8s.io/api/core/v1/generated.pb.go",
		"staging/src/k8s.io/api/core/v1/types_swagger_doc_generated.go",
		"staging/src/k8s.io/api/core/v1/zz_generated.deepcopy.go",
		"staging/src/k8s.io/api/testdata/HEAD/apps.v1.Deployment.json",
		"staging/src/k8s.io/client-go/applyconfigurations/core/v1/envvarsource.go",
	}
	// From v1.37 on conversion-gen casts types of the same layout and names no field.
	if semver.Compare(o.Release, "v1.37.0") < 0 {
		written = append(written, "pkg/apis/core/v1/zz_generated.conversion.go")
	}
	for _, made := range written {
		if data, err := os.ReadFile(filepath.Join(o.Tree, made)); err != nil || !strings.Contains(strings.ToLower(string(data)), "probefield") {
			t.Errorf("%s does not have the new field (%v)", made, err)
		}
	}
	commit(t, o.Tree, "what the change reaches")
	if err := Generate(t.Context(), o, nil); err != nil {
		t.Fatal(err)
	}
	if got := git(t, o.Tree, "status", "--porcelain"); got != "" {
		t.Errorf("the second run changed the result of the first:\n%s", got)
	}
	t.Run("and all generators together make the same", func(t *testing.T) {
		if testing.Short() {
			t.Skip("-short: this runs every generator for every package")
		}
		o.All = true
		if err := Generate(t.Context(), o, nil); err != nil {
			t.Fatal(err)
		}
		if got := git(t, o.Tree, "status", "--porcelain"); got != "" {
			t.Errorf("other files than those of the reached packages change:\n%s", got)
		}
	})
}

// addField gives EnvVarSource a field, in the API and internally.
func addField(t *testing.T, tree string) {
	t.Helper()
	const start = "type EnvVarSource struct {\n"
	for file, field := range map[string]string{
		coreTypes:                "\t// probeField is new.\n\t// +optional\n\tProbeField *string `json:\"probeField,omitempty\" protobuf:\"bytes,99,opt,name=probeField\"`\n",
		"pkg/apis/core/types.go": "\tProbeField *string\n",
	} {
		write(t, tree, map[string]string{file: replaceOnce(t, read(t, tree, file), start, start+field)})
	}
}
