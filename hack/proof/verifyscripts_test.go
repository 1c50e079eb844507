package proof

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"podenv.dev/hack/internal/codegen"
	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/source"
)

// Why some of the release's scripts are not run, in the words of docs/patches.md.
const (
	needsNetwork = "it asks servers on the internet"
	needsVendor  = "it reads `vendor/`, which a release's module lacks"
	needsSource  = "what it runs is in `hack/tools`, which a release's module lacks"
)

// leftOut are the scripts hack/verify-*.sh of the releases that are not run, and why. All others run,
// and must pass.
var leftOut = map[string]string{
	"all":                           "it runs the others",
	"codegen":                       "podenv runs the release's generators: see \"generators\" in [testing.md](testing.md)",
	"deadcode-elimination":          "it wants the newest version of a tool, whatever that is",
	"external-dependencies-version": "it installs a version of zeitgeist that the module proxy does not have",
	"mocks":                         "its mockery does not compile with the Go that builds here",
	"golangci-lint-pr":              "it is `golangci-lint` for what a pull request adds, as podenv runs that one",
	"golangci-lint-pr-hints":        "reviewers may ignore what it finds",
	"go-apidocs":                    "it compares with the release before, and never fails",
	"govulncheck":                   needsNetwork, "licenses": needsNetwork, "openapi-docs-urls": needsNetwork,
	"metrics-documentation-list": needsSource, "metrics-naming": needsSource, "publishing-bot": needsSource,
	"imports": needsVendor, "vendor": needsVendor, "vendor-licenses": needsVendor, "no-vendor-cycles": needsVendor,
}

// movedToTools are scripts whose programs are in hack/tools from v1.37 on: there they are not run.
var movedToTools = []string{"generated-stable-metrics", "golangci-lint-config", "prometheus-imports"}

// TestVerifyScripts runs the release's own hack/verify-*.sh on the exported series, as upstream
// does before it merges a change: for podenv export --verify, and after the series for make
// verify-series.
func TestVerifyScripts(t *testing.T) {
	requireSeries(t)
	lane{t}.check("upstream's verify scripts", "verify", needBuild, func(c *check) error {
		if err := steps.Packages(c.ctx, "gcc", "iproute2", "jq", "libc6-dev", "make", "openssl", "python3", "rsync"); err != nil {
			return err
		}
		t := built.value.Tree
		if !slices.Contains(groups, "series") {
			return verifyScripts(c, t)
		}
		code, err := digest.File(filepath.Join(repo.Root, "hack/proof/verifyscripts_test.go"))
		if err != nil {
			return err
		}
		var none struct{}
		return c.once(t, "verify scripts "+code, &none, func() error { return verifyScripts(c, t) })
	})
}

func verifyScripts(c *check, t *source.Tree) error {
	w, err := c.applyExport(t)
	if err != nil {
		return err
	}
	if err := w.completeCheckout(); err != nil {
		return err
	}
	changed, err := t.Changed(c.ctx)
	if err != nil {
		return err
	}
	names, err := scriptsIn(w.dir)
	if err != nil {
		return err
	}
	documented := documentedScripts(c, repo.Root)
	for _, name := range names {
		c.part("verify-"+name+".sh", func() error {
			if why := leftOut[name]; why != "" {
				return skipped(why)
			}
			if documented[name] == "" {
				return errors.New("docs/patches.md does not list it: if it passes, add it to the table there, otherwise also to leftOut, and why")
			}
			c.step.Now("verify-%s.sh", name)
			return w.verifyScript(name, changed)
		})
	}
	return nil
}

// scriptsIn lists the scripts of a checkout, without verify- and .sh.
func scriptsIn(dir string) ([]string, error) {
	files, err := fs.Glob(os.DirFS(dir), "hack/verify-*.sh")
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no hack/verify-*.sh in %s", dir)
	}
	for i, file := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(path.Base(file), "verify-"), ".sh")
	}
	return files, err
}

// completeCheckout adds what a checkout of Kubernetes has and a release's module lacks: a symlink, the
// modules of examples, of which the nearest version takes the place of the release's, a module for the
// tools that scripts install, and etcd.
func (w *checkout) completeCheckout() error {
	if err := os.Symlink("build/root/Makefile", filepath.Join(w.dir, "Makefile")); err != nil {
		return err
	}
	for _, name := range []string{"sample-apiserver", "sample-cli-plugin", "sample-controller"} {
		dir, err := w.nearest("k8s.io/" + name)
		if err != nil {
			return err
		}
		staging := "./staging/src/k8s.io/" + name
		if err := os.CopyFS(filepath.Join(w.dir, staging), os.DirFS(dir)); err != nil {
			return err
		}
		if err := w.goIn(w.dir, "work", "use", staging); err != nil {
			return err
		}
	}
	tools := filepath.Join(w.dir, "hack", "tools")
	if err := os.Mkdir(tools, 0o755); err != nil {
		return err
	}
	if err := w.goIn(tools, "mod", "init", "k8s.io/kubernetes/hack/tools"); err != nil {
		return err
	}
	for _, tool := range []string{"github.com/client9/misspell/cmd/misspell@v0.3.4", "github.com/golangci/misspell/cmd/misspell@v0.6.0", "sigs.k8s.io/yaml/yamlfmt@v1.6.0"} {
		if err := w.goIn(tools, "get", "-tool", tool); err != nil {
			return err
		}
	}
	if err := w.goIn(tools, "mod", "tidy"); err != nil { // verify-internal-modules.sh wants it so
		return err
	}
	// In the workspace of the root, which it is not in, nothing could be installed from it.
	if err := w.command("go", "work", "init", ".").Dir(tools).Env("GOWORK=" + filepath.Join(tools, "go.work")).Run(); err != nil {
		return err
	}
	if err := w.goIn(w.dir, "mod", "download"); err != nil { // the scripts forbid themselves downloads
		return err
	}
	if err := w.installEtcd(); err != nil {
		return err
	}
	if _, err := w.git("add", "--all", "--force"); err != nil {
		return err
	}
	_, err := w.git("commit", "--quiet", "--message=What the release's module lacks")
	return err
}

// installEtcd puts the node image's etcd where the scripts put one that they download.
func (w *checkout) installEtcd() error {
	etcd, err := etcdProgram()
	if err != nil {
		return err
	}
	lib, err := os.ReadFile(filepath.Join(w.dir, "hack/lib/etcd.sh"))
	if err != nil {
		return err
	}
	version := regexp.MustCompile(`ETCD_VERSION:-([0-9.]+)`).FindSubmatch(lib)
	if version == nil {
		return errors.New("hack/lib/etcd.sh does not say which etcd it wants")
	}
	name := fmt.Sprintf("etcd-v%s-linux-%s", version[1], runtime.GOARCH)
	dir := filepath.Join(w.dir, "third_party", name)
	return errors.Join(os.Mkdir(dir, 0o755), os.Symlink(etcd, filepath.Join(dir, "etcd")), os.Symlink(name, filepath.Join(w.dir, "third_party/etcd")))
}

// nearest downloads a module of the release, or of the nearest release before it that can be had, and
// returns its folder.
func (w *checkout) nearest(module string) (dir string, err error) {
	minor, patch, _ := strings.Cut(strings.TrimPrefix(w.tree.Series.Release, "v1."), ".")
	last, err := strconv.Atoi(patch)
	if err != nil {
		return "", err
	}
	for ; last >= 0; last-- {
		var out string
		out, err = w.command("go", "mod", "download", "-json", fmt.Sprintf("%s@v0.%s.%d", module, minor, last)).Dir(w.dir).Output()
		if err == nil {
			var downloaded struct{ Dir string }
			return downloaded.Dir, json.Unmarshal([]byte(out), &downloaded)
		}
	}
	return "", err
}

func (w *checkout) goIn(dir string, args ...string) error {
	return w.command("go", args...).Dir(dir).Env("GOFLAGS=-mod=mod").Run()
}

// verifyScript runs a script of the checkout, whose series changes files. Scripts that take hours for
// all of Kubernetes, or that fail on the release's own files, check what changed.
func (w *checkout) verifyScript(name string, changed []string) error {
	if slices.Contains(movedToTools, name) {
		if _, err := os.Stat(filepath.Join(w.dir, "test/instrumentation")); err != nil {
			return skipped(needsSource)
		}
	}
	var args []string
	switch name {
	case "typecheck":
		args = w.tree.Packages(changed)
	case "shellcheck":
		args = slices.DeleteFunc(slices.Clone(changed), func(file string) bool { return path.Ext(file) != ".sh" })
		if len(args) == 0 {
			return skipped("the series changes no script")
		}
	case "golangci-lint":
		return w.golangciLint(changed)
	}
	caches, err := w.command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		return err
	}
	gocache, gomodcache, _ := strings.Cut(caches, "\n")
	// By default a script downloads Go, and begins with empty caches.
	env := []string{"FORCE_HOST_GO=y", "GOFLAGS=", "GOCACHE=" + gocache, "GOMODCACHE=" + gomodcache}
	err = w.command(filepath.Join("hack", "verify-"+name+".sh"), args...).Dir(w.dir).Env(env...).Run()
	_, clean := w.git("reset", "--quiet", "--hard") // what a script that fails has generated
	return errors.Join(err, clean)
}

// golangciLint reports what the series adds, as verify-golangci-lint.sh does in a pull request, with two
// differences: it does not check the configuration, which asks a server on the internet, and a linter
// whose source is in hack/tools is not run.
func (w *checkout) golangciLint(changed []string) error {
	file := "hack/golangci.yaml"
	data, err := os.ReadFile(filepath.Join(w.dir, file))
	if err != nil {
		return err
	}
	var config map[string]any
	if err := yaml.Unmarshal(data, &config); err != nil {
		return err
	}
	bin := filepath.Join(w.dir, "_output/local/bin") // where the configuration expects the plugins
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	program := "github.com/golangci/golangci-lint/cmd/golangci-lint@v1.64.8"
	plugins := map[string]string{"logcheck.so": "sigs.k8s.io/logtools/logcheck/plugin@v0.10.1"}
	if config["version"] == "2" {
		program = "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.11.2"
		plugins["kube-api-linter.so"] = "sigs.k8s.io/kube-api-linter/pkg/plugin@v0.0.0-20260716143926-092fe0c72997"
		linters, _ := config["linters"].(map[string]any)
		enabled, _ := linters["enable"].([]any)
		linters["enable"] = slices.DeleteFunc(enabled, func(linter any) bool { return linter == "sorted" })
		unstructured.RemoveNestedField(linters, "settings", "custom", "sorted")
		if data, err = yaml.Marshal(config); err != nil {
			return err
		}
		file = "_output/golangci.yaml"
		if err := os.WriteFile(filepath.Join(w.dir, file), data, 0o644); err != nil {
			return err
		}
	}
	if err := w.buildLinters(bin, program, plugins); err != nil {
		return err
	}
	release, _, err := w.tree.Release(w.ctx)
	if err != nil {
		return err
	}
	args := []string{"run", "--config=" + file, "--new-from-rev=" + release}
	for _, name := range changed {
		if dir := "./" + path.Dir(name); path.Ext(name) == ".go" && !codegen.IsGenerated(name) && !slices.Contains(args, dir) {
			args = append(args, dir)
		}
	}
	return w.command(filepath.Join(bin, "golangci-lint"), args...).Dir(w.dir).Env("GOFLAGS=").Run()
}

// buildLinters builds a program and its plugins in a module of their own: plugins have the program's
// versions of all packages.
func (w *checkout) buildLinters(bin, program string, plugins map[string]string) error {
	module := filepath.Join(w.dir, "_output", "linters")
	if err := os.MkdirAll(module, 0o755); err != nil {
		return err
	}
	build := func(args ...string) error {
		return w.command("go", args...).Dir(module).Env("GOWORK=off", "GOFLAGS=-mod=mod", "CGO_ENABLED=1").Run()
	}
	if err := build("mod", "init", "linters"); err != nil {
		return err
	}
	if err := build(append([]string{"get", "-tool", program}, slices.Collect(maps.Values(plugins))...)...); err != nil {
		return err
	}
	program, _, _ = strings.Cut(program, "@")
	if err := build("build", "-o", bin+"/", program); err != nil {
		return err
	}
	for file, plugin := range plugins {
		plugin, _, _ = strings.Cut(plugin, "@")
		if err := build("build", "-o", filepath.Join(bin, file), "-buildmode=plugin", plugin); err != nil {
			return err
		}
	}
	return nil
}

// TestTheDocsListEachVerifyScript compares docs/patches.md with leftOut and movedToTools.
func TestTheDocsListEachVerifyScript(t *testing.T) {
	want := map[string]string{}
	for name, why := range leftOut {
		want[name] = "not run: " + why
	}
	for _, name := range movedToTools {
		want[name] = "pass on v1.33, not run on v1.37: " + needsSource
	}
	documented := documentedScripts(t, "../..")
	for name := range want {
		if documented[name] == "" {
			t.Errorf("docs/patches.md does not list verify-%s.sh", name)
		}
	}
	for name, result := range documented {
		if want := cmp.Or(want[name], "pass"); result != want {
			t.Errorf("docs/patches.md says of verify-%s.sh: %s\nbut: %s", name, result, want)
		}
	}
}

// documentedScripts returns what docs/patches.md says of each script.
func documentedScripts(t testing.TB, root string) map[string]string {
	t.Helper()
	docs, err := os.ReadFile(filepath.Join(root, "docs/patches.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(docs), "### The release's own checks\n")
	if !found {
		t.Fatal("docs/patches.md has no section about the release's own checks")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	results := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[a-z0-9`, -]+`) \\| ([^|]+) \\|$").FindAllStringSubmatch(section, -1) {
		for _, name := range strings.Split(strings.Trim(row[1], "`"), "`, `") {
			results[name] = row[2]
		}
	}
	return results
}
