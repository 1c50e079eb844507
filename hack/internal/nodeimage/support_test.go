package nodeimage

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/testutil"
)

func TestReadVersions(t *testing.T) {
	const good = `package constants

const (
	// DefaultEtcdVersion is the etcd version
	DefaultEtcdVersion = "3.5.24-0"
	CoreDNSVersion     = "v1.12.0"
	CoreDNSReplicas    = 2
	PauseVersion       = "3.10"
)
`
	for name, tc := range map[string]struct{ text, wantErr string }{
		"as kubeadm has them": {good, ""},
		"one is missing":      {strings.Replace(good, "PauseVersion", "Other", 1), "want DefaultEtcdVersion, CoreDNSVersion and PauseVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := t.TempDir()
			testutil.WriteFile(t, filepath.Join(tree, kubeadmConstants), tc.text)
			v, err := readVersions(tree)
			testutil.CheckError(t, err, tc.wantErr)
			if tc.wantErr != "" {
				return
			}
			got := []string{v.etcdImage(), v.coreDNSImage(), v.pauseImage(), v.etcdModule()}
			want := []string{"registry.k8s.io/etcd:3.5.24-0", "registry.k8s.io/coredns/coredns:v1.12.0", "registry.k8s.io/pause:3.10", "v3.5.24"}
			if !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestReadVersionsOfARealRelease(t *testing.T) {
	v, err := readVersions(moduleOf(t, "k8s.io/kubernetes"))
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^v3\.\d+\.\d+$`).MatchString(v.etcdModule()) {
		t.Errorf("etcd module version %q", v.etcdModule())
	}
}

func TestSupportImageOfAnUnknownVersionSaysWhatToAdd(t *testing.T) {
	tree := t.TempDir()
	testutil.WriteFile(t, filepath.Join(tree, kubeadmConstants), `package constants
const DefaultEtcdVersion = "9.9.9-0"
const CoreDNSVersion = "v9.9.9"
const PauseVersion = "9.9"
`)
	_, err := SupportImages(t.Context(), layout.Layout{Root: t.TempDir()}, series.Series{Release: "v9.9.9"}, tree, foreignArch, nil)
	testutil.CheckError(t, err, "no file pins this version: make hack/images/")
	testutil.CheckError(t, err, "for v9.9.9")
}

// foreignArch is not this machine's, so that nothing of a node image alone is built for it.
var foreignArch = map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]

// The images of a release's specs have its etcd, which must run here.
func TestProgramsOfAnotherArchitectureHaveAFolderOfTheirOwn(t *testing.T) {
	fakeCommands(t, map[string]string{"go": goBuilds(t)})
	l := fakeRepository(t)
	archives := map[string]bool{}
	for _, arch := range []string{foreignArch, runtime.GOARCH} {
		archive, err := support{ref: "registry.k8s.io/etcd:3.5.24-0", binary: "/etcd"}.build(t.Context(), l, arch, nil)
		if err != nil {
			t.Fatal(err)
		}
		archives[archive] = true
	}
	tree := t.TempDir()
	testutil.WriteFile(t, filepath.Join(tree, kubeadmConstants), "package constants\n\nconst DefaultEtcdVersion = \"3.5.24-0\"\nconst CoreDNSVersion = \"v1\"\nconst PauseVersion = \"3\"\n")
	testutil.WriteFile(t, filepath.Join(l.Root, "hack/images/etcd/v3.5.24.mod"), "module etcd\n")
	program, err := Etcd(t.Context(), l, tree, nil)
	if want := filepath.Join(l.Cache("support"), "bin", "registry.k8s.io-etcd-3.5.24-0"); err != nil || program != want || len(archives) != 2 {
		t.Errorf("program %q of archives %v, %v; want %s", program, archives, err, want)
	}
	if _, err := os.Stat(program); err != nil {
		t.Error(err)
	}
}

// The file that pins what a support image is made of is called after the version.
func TestPinsOfSupportImagesAreOfTheVersionOfTheirName(t *testing.T) {
	for image, module := range map[string]string{"etcd": "go.etcd.io/etcd/server/v3", "coredns": "github.com/coredns/coredns"} {
		files, err := filepath.Glob(filepath.Join(layout.MustFind().Root, "hack/images", image, "v*.mod"))
		if err != nil || len(files) == 0 {
			t.Fatalf("nothing pins %s: %v", image, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			mod, err := modfile.Parse(file, data, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.TrimSuffix(filepath.Base(file), ".mod")
			i := slices.IndexFunc(mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == module })
			if i < 0 || mod.Require[i].Mod.Version != want {
				t.Errorf("%s does not require %s %s", file, module, want)
			}
			if len(mod.Replace) > 0 {
				t.Errorf("%s replaces modules: what it builds is not what it says", file)
			}
		}
	}
}

// corefile finds the plugins in the Corefile that kubeadm writes, blocks of blocks left out.
var corefile = regexp.MustCompile(`(?m)^    ([a-z]+)\b`)

func TestCoreDNSHasThePluginsOfKubeadmsCorefile(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(moduleOf(t, "k8s.io/kubernetes"), "cmd/kubeadm/app/phases/addons/dns/manifests.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(source), "  Corefile: |\n")
	if !ok {
		t.Fatal("kubeadm has no Corefile where it had one")
	}
	text, _, _ = strings.Cut(text, "`")
	text = regexp.MustCompile(`(?m)^    `).ReplaceAllString(text, "")
	var want []string
	for _, m := range corefile.FindAllStringSubmatch(text, -1) {
		want = append(want, m[1])
	}
	if !slices.Contains(want, "kubernetes") || len(want) < 8 {
		t.Fatalf("read the plugins %v from kubeadm's Corefile", want)
	}
	have := pluginsOf(t, filepath.Join(layout.MustFind().Root, "hack/images/coredns/main.go"))
	for _, plugin := range want {
		if !have[plugin] {
			t.Errorf("our CoreDNS has no plugin %s", plugin)
		}
	}
}

func pluginsOf(t testing.TB, main string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), main, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	plugins := map[string]bool{}
	for _, imp := range file.Imports {
		path, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if name, ok := strings.CutPrefix(path, "github.com/coredns/coredns/plugin/"); ok {
			if name == "metrics" {
				name = "prometheus"
			}
			plugins[name] = true
		}
	}
	return plugins
}

func moduleOf(t testing.TB, module string) string {
	t.Helper()
	dir, err := moduleDir(t.Context(), layout.MustFind(), module)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
