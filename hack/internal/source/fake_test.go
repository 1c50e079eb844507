package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"

	"podenv.dev/hack/internal/codegen"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/series"
)

// proxyDir is a Go module proxy with small releases of Kubernetes, one for all tests.
var proxyDir string

func TestMain(m *testing.M) {
	if os.Getenv(killAt) != "" {
		os.Exit(m.Run()) // the tests' own child: everything is set up
	}
	dir, err := os.MkdirTemp("", "podenv-source-")
	if err != nil {
		panic(err)
	}
	proxyDir = filepath.Join(dir, "proxy")
	for key, value := range map[string]string{
		"GOPROXY": "file://" + proxyDir, "GOMODCACHE": filepath.Join(dir, "mod"),
		"GONOSUMDB": "*", "GONOSUMCHECK": "1", "GOFLAGS": "", "GOWORK": "off",
		"PODENV_TEST_PROXY": proxyDir,
	} {
		os.Setenv(key, value)
	}
	for _, release := range []string{"v1.33.13", "v1.33.14", clashing, older} {
		publishRelease(release)
	}
	for _, release := range []string{"v1.10.0", "v1.11.0"} {
		publish("github.com/tektoncd/pipeline", release, map[string]string{
			"go.mod":         "module github.com/tektoncd/pipeline\n\ngo 1.25.6\n",
			"pkg/pod/pod.go": "package pod\n\n// Release is the release.\nconst Release = \"" + release + "\"\n\n// Env is the environment.\nconst Env = 1\n",
		})
	}
	code := m.Run()
	clean := exec.Command("go", "clean", "-modcache")
	clean.Env = append(os.Environ(), "GOMODCACHE="+filepath.Join(dir, "mod")) // never that of the user
	clean.Run()                                                               //nolint:errcheck // the folder goes with it
	os.RemoveAll(dir)
	os.Exit(code)
}

const (
	// clashing is a release in which step 30 differs.
	clashing = "v1.33.15"
	// older is a release of an older minor, in which step 20 differs and docs/windows.txt does
	// not exist.
	older = "v1.32.13"
)

// kubelet is the file of the fake release that patches change.
func kubelet(release string) string {
	var b strings.Builder
	b.WriteString("package kubelet\n\n// Release is the release.\nconst Release = \"" + release + "\"\n")
	for i := range 40 {
		value := i
		if release == clashing && i == 30 {
			value = 300
		}
		if release == older && i == 20 {
			value = 200
		}
		fmt.Fprintf(&b, "\n// Step%d is a step.\nfunc Step%d() int { return %d }\n", i, i, value)
	}
	return b.String()
}

// publishRelease puts a release with one staging module into the proxy.
func publishRelease(release string) {
	staging := "v0" + strings.TrimPrefix(release, "v1")
	files := map[string]string{
		"go.mod": `module k8s.io/kubernetes

go 1.24.0

require (
	k8s.io/api v0.0.0
	k8s.io/sample-apiserver v0.0.0
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/sample-apiserver => ./staging/src/k8s.io/sample-apiserver
	k8s.io/sample-controller => ./staging/src/k8s.io/sample-controller
)
`,
		"go.work":                       "go 1.24.0\n\nuse (\n\t.\n\t./staging/src/k8s.io/api\n\t./staging/src/k8s.io/sample-apiserver\n)\n",
		".gitignore":                    "*.swp\n/_output\n",
		".gitattributes":                "* text=auto eol=lf\n",
		"pkg/kubelet/kubelet.go":        kubelet(release),
		"pkg/apis/core/types.go":        "package core\n\n// Pod is a pod.\ntype Pod struct{}\n",
		"pkg/apis/core/zz_generated.go": "package core\n\n// hash: stock\n",
		"hack/update.sh":                "#!/bin/sh\necho update\n",
		"docs/windows.txt":              "one\r\ntwo\r\nthree\r\n",
		"docs/with space and ü.md":      "text\n",
		"vendor/OWNERS":                 "nobody\n",
	}
	if release == older {
		delete(files, "docs/windows.txt")
	}
	publish("k8s.io/kubernetes", release, files)
	publish("k8s.io/api", staging, map[string]string{
		"go.mod":                  "module k8s.io/api\n\ngo 1.24.0\n",
		"core/v1/types.go":        "package v1\n\n// Pod is a pod.\ntype Pod struct{}\n",
		"core/v1/zz_generated.go": "package v1\n\n// hash: stock\n",
	})
}

func publish(path, version string, files map[string]string) {
	dir := filepath.Join(proxyDir, path, "@v")
	must(os.MkdirAll(dir, 0o755))
	memory := fstest.MapFS{}
	var zipped []modzip.File
	for name, content := range files {
		memory[name] = &fstest.MapFile{Data: []byte(content)}
		zipped = append(zipped, memFile{memory, name})
	}
	f, err := os.Create(filepath.Join(dir, version+".zip"))
	must(err)
	// Like in a real archive, Create leaves out vendor/ except for its OWNERS.
	must(modzip.Create(f, module.Version{Path: path, Version: version}, zipped))
	must(f.Close())
	must(os.WriteFile(filepath.Join(dir, version+".mod"), []byte(files["go.mod"]), 0o644))
	info := fmt.Sprintf(`{"Version":%q,"Time":"2026-06-11T16:59:07Z"}`, version)
	must(os.WriteFile(filepath.Join(dir, version+".info"), []byte(info), 0o644))
	list, err := os.OpenFile(filepath.Join(dir, "list"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	must(err)
	_, err = list.WriteString(version + "\n")
	must(errors.Join(err, list.Close()))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// world is a repository with one series, and a user who works in its tree.
type world struct {
	testing.TB
	layout layout.Layout
	series series.Series
	gen    *fakeGenerator
	notes  []string        // of the last writePatches
	run    func(*assembly) // a last change of an assembly before it runs
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldIn(t, t.TempDir())
}

func newWorldIn(t testing.TB, root string) *world {
	t.Helper()
	w := &world{TB: t, layout: layout.Layout{Root: root}, gen: &fakeGenerator{}}
	w.write("go.mod", "module podenv.dev\n")
	w.pin("v1.33.13")
	return w
}

// pin makes release the base of the series.
func (w *world) pin(release string) {
	w.Helper()
	staging := "v0" + strings.TrimPrefix(release, "v1")
	var sums strings.Builder
	for path, version := range map[string]string{"k8s.io/kubernetes": release, "k8s.io/api": staging} {
		h, err := dirhash.HashZip(filepath.Join(proxy(), path, "@v", version+".zip"), dirhash.Hash1)
		w.ok(err)
		mod, err := os.ReadFile(filepath.Join(proxy(), path, "@v", version+".mod"))
		w.ok(err)
		modHash, err := dirhash.Hash1([]string{"go.mod"}, openerOf(mod))
		w.ok(err)
		fmt.Fprintf(&sums, "%s %s %s\n%s %s/go.mod %s\n", path, version, h, path, version, modHash)
	}
	w.write("patches/v1.33/go.mod", fmt.Sprintf("module podenv.dev/patches/v1.33\n\ngo 1.24.0\n\nrequire (\n\tk8s.io/api %s\n\tk8s.io/kubernetes %s\n)\n", staging, release))
	w.write("patches/v1.33/go.sum", sums.String())
	w.load()
}

func proxy() string { return os.Getenv("PODENV_TEST_PROXY") }

// load reads the series again.
func (w *world) load() {
	w.Helper()
	s, err := series.Load(w.layout, "v1.33")
	w.ok(err)
	w.series = s
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) assembly(o Options) *assembly {
	a := newAssembly(w.layout, w.series, o, nil)
	a.gen = w.gen.generator()
	if w.run != nil {
		w.run(a)
	}
	return a
}

func (w *world) assemble(o Options) (*Tree, error) {
	return w.assembly(o).run(context.Background())
}

func (w *world) mustAssemble() *Tree {
	w.Helper()
	t, err := w.assemble(Options{})
	w.ok(err)
	return t
}

func (w *world) open() (*Tree, error) {
	w.Helper()
	return Open(context.Background(), w.layout, w.series, false, nil)
}

func (w *world) writePatches() ([]string, error) {
	written, err := w.assembly(Options{}).writePatches(context.Background())
	if written == nil {
		return nil, err
	}
	w.notes = written.Notes
	return written.Files, err
}

func (w *world) mustWritePatches() []string {
	w.Helper()
	changed, err := w.writePatches()
	w.ok(err)
	return changed
}

// dir is the path of the tree.
func (w *world) dir() string { return w.layout.Tree("v1.33") }

// write writes a file of the repository.
func (w *world) write(path, content string) {
	w.Helper()
	full := filepath.Join(w.layout.Root, path)
	w.ok(os.MkdirAll(filepath.Dir(full), 0o755))
	w.ok(os.WriteFile(full, []byte(content), 0o644))
}

// edit replaces old by new in a file of the tree; with an empty old the file is created.
func (w *world) edit(path, old, new string) {
	w.Helper()
	full := filepath.Join(w.dir(), path)
	data, err := os.ReadFile(full)
	if old == "" {
		data, err, old = []byte("\x00"), os.MkdirAll(filepath.Dir(full), 0o755), "\x00"
	}
	w.ok(err)
	if !bytes.Contains(data, []byte(old)) {
		w.Fatalf("%s does not have %q", path, old)
	}
	w.ok(os.WriteFile(full, bytes.Replace(data, []byte(old), []byte(new), 1), 0o644))
}

// editPatch replaces old by new in a patch file of the series.
func (w *world) editPatch(name, old, new string) {
	w.Helper()
	text := w.patches()[name]
	if !strings.Contains(text, old) {
		w.Fatalf("%s does not have %q:\n%s", name, old, text)
	}
	w.write("patches/v1.33/"+name, strings.Replace(text, old, new, 1))
}

// removeMade removes everything that podenv has made.
func (w *world) removeMade() {
	w.Helper()
	w.ok(errors.Join(os.RemoveAll(w.layout.Output()), os.RemoveAll(filepath.Dir(w.dir()))))
}

// reassemble assembles the tree from scratch.
func (w *world) reassemble() {
	w.Helper()
	w.removeMade()
	w.mustAssemble()
}

// wantRev checks a revision of the tree: HEAD is its commit, HEAD^{tree} its content.
func (w *world) wantRev(rev, want string) {
	w.Helper()
	if got := w.git("rev-parse", rev); got != want {
		w.Errorf("%s of the tree is %s, want %s", rev, got, want)
	}
}

// commit commits everything in the tree as the user.
func (w *world) commit(message string) {
	w.Helper()
	w.git("add", "--all")
	w.git("commit", "--quiet", "--message="+message)
}

// git runs git in the tree as the user, and returns its output.
func (w *world) git(args ...string) string {
	w.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = w.dir()
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_EDITOR=true",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

// subjects are the subjects of the tree's commits, oldest first.
func (w *world) subjects() []string {
	w.Helper()
	return strings.Split(w.git("log", "--reverse", "--format=%s"), "\n")
}

// patches are the series' patch files by name.
func (w *world) patches() map[string]string {
	w.Helper()
	files := map[string]string{}
	for _, path := range w.series.Patches() {
		data, err := os.ReadFile(path)
		w.ok(err)
		files[filepath.Base(path)] = string(data)
	}
	return files
}

// templates are worlds that tests copy. Each is built once.
var templates sync.Map

// copyOf returns a copy of the world that build makes.
func copyOf(t testing.TB, name string, build func(w *world)) *world {
	t.Helper()
	made, _ := templates.LoadOrStore(name, sync.OnceValue(func() string {
		root, err := os.MkdirTemp(filepath.Dir(proxy()), name)
		must(err)
		w := newWorldIn(t, root)
		build(w)
		return root
	}))
	root := filepath.Join(t.TempDir(), "root")
	if err := os.CopyFS(root, os.DirFS(made.(func() string)())); err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, layout: layout.Layout{Root: root}, gen: &fakeGenerator{}}
	w.load()
	return w
}

// addEnvfile adds the file of a package of this module to the repository and to the tree.
func (w *world) addEnvfile() {
	w.Helper()
	w.write("pkg/kubelet/envfile/envfile.go", "package envfile\n")
	w.edit("pkg/kubelet/envfile/envfile.go", "", "package envfile\n")
}

// newWorldWithPatches has a new file and two patches: one for the kubelet, and one for an API
// with generated code.
func newWorldWithPatches(t testing.TB) *world {
	t.Helper()
	return copyOf(t, "two-patches", func(w *world) {
		w.mustAssemble()
		w.addEnvfile()
		w.edit("pkg/kubelet/kubelet.go", "return 10 }", "return 1010 }")
		w.commit("kubelet: change step 10\n\nFor a test.")
		w.edit(fakeTypes, "type Pod struct{}", "type Pod struct{ Field int }")
		w.commit("api: add a field")
		w.mustWritePatches()
		w.mustAssemble()
	})
}

// fakeGenerator writes the size of types.go into zz_generated.go if types.go has a field.
type fakeGenerator struct {
	runs int
	fail error
	also string // another file that it writes
	stop func() // called in the middle of the work
}

const (
	fakeTypes     = "staging/src/k8s.io/api/core/v1/types.go"
	fakeGenerated = "staging/src/k8s.io/api/core/v1/zz_generated.go"
)

func (g *fakeGenerator) generator() generator {
	return generator{
		inputsKey: func(_ context.Context, o codegen.Options) (string, error) {
			data, err := os.ReadFile(filepath.Join(o.Tree, fakeTypes))
			return string(data), err
		},
		generate: g.generate,
		isGenerated: func(path string) bool {
			return strings.HasPrefix(filepath.Base(path), "zz_generated")
		},
	}
}

func (g *fakeGenerator) generate(ctx context.Context, o codegen.Options, _ *progress.Step) error {
	g.runs++
	data, err := os.ReadFile(filepath.Join(o.Tree, fakeTypes))
	if err != nil {
		return err
	}
	text := "package v1\n\n// hash: stock\n"
	if bytes.Contains(data, []byte("Field")) {
		text = "package v1\n\n// hash: " + fmt.Sprint(len(data)) + "\n"
	}
	err = os.WriteFile(filepath.Join(o.Tree, fakeGenerated), []byte(text), 0o644)
	if g.also != "" {
		err = os.WriteFile(filepath.Join(o.Tree, g.also), []byte("also\n"), 0o644)
	}
	if g.stop != nil {
		g.stop()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if g.fail != nil {
		return g.fail
	}
	return err
}

// memFile is a file of a module that is only in memory.
type memFile struct {
	fs   fstest.MapFS
	name string
}

func (f memFile) Path() string                 { return f.name }
func (f memFile) Lstat() (os.FileInfo, error)  { return f.fs.Stat(f.name) }
func (f memFile) Open() (io.ReadCloser, error) { return f.fs.Open(f.name) }

// openerOf returns a function with which dirhash opens a go.mod in memory.
func openerOf(content []byte) func(string) (io.ReadCloser, error) {
	return func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
}
