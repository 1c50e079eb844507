package series

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podenv.dev/hack/internal/layout"
)

func repository(t *testing.T, files map[string]string) layout.Layout {
	t.Helper()
	l := layout.Layout{Root: t.TempDir()}
	for name, text := range files {
		path := filepath.Join(l.Root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

const pin133 = "module podenv.dev/patches/v1.33\n\ngo 1.24.0\n\nrequire k8s.io/kubernetes v1.33.13\n"

func TestLoadReadsTheReleaseAndThePatchesInOrder(t *testing.T) {
	l := repository(t, map[string]string{
		"patches/v1.33/go.mod":        pin133,
		"patches/v1.33/0002-b.patch":  "",
		"patches/v1.33/0001-a.patch":  "",
		"patches/v1.33/0010-c.patch":  "",
		"patches/v1.33/README.md":     "",
		"patches/v1.9/go.mod":         "",
		"patches/v1.33/notapatch.txt": "",
	})
	s, err := Load(l, "v1.33")
	if err != nil {
		t.Fatal(err)
	}
	if s.Release != "v1.33.13" || s.Staging() != "v0.33.13" {
		t.Errorf("release %s, staging %s", s.Release, s.Staging())
	}
	files := s.Patches()
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	if diff := cmp.Diff([]string{"0001-a.patch", "0002-b.patch", "0010-c.patch"}, files); diff != "" {
		t.Error(diff)
	}
	if names := Names(l); cmp.Diff([]string{"v1.9", "v1.33"}, names) != "" {
		t.Errorf("names %q", names)
	}
}

const pinTekton = "module podenv.dev/patches/tekton/v1.10\n\nrequire github.com/tektoncd/pipeline v1.10.0\n"

func TestTektonSeriesAreListedAfterKubernetesSeries(t *testing.T) {
	l := repository(t, map[string]string{
		"patches/v1.33/go.mod":              pin133,
		"patches/tekton/v1.9/go.mod":        "",
		"patches/tekton/v1.10/go.mod":       pinTekton,
		"patches/tekton/new/a.go":           "",
		"patches/tekton/v1.10/0001-a.patch": "Subject: a\n\nNew-File: a.go\n\n",
	})
	s, err := Load(l, "tekton-v1.10")
	if err != nil {
		t.Fatal(err)
	}
	if s.Release != "v1.10.0" || s.Module() != "github.com/tektoncd/pipeline" || s.Dir != filepath.Join(l.Root, "patches/tekton/v1.10") {
		t.Errorf("series %+v of module %s", s, s.Module())
	}
	if names := Names(l); cmp.Diff([]string{"v1.33"}, names) != "" {
		t.Errorf("series of Kubernetes: %q, %v", names, err)
	}
	if all := All(l); cmp.Diff([]string{"v1.33", "tekton-v1.9", "tekton-v1.10"}, all) != "" {
		t.Errorf("all series: %q, %v", all, err)
	}
	if folder := s.NewFileFolder("a.go"); folder != filepath.Join(l.Root, "patches/tekton/new") {
		t.Errorf("its new files are in %s", folder)
	}
	if _, err := Load(l, "tekton/v1.10"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a folder for a name: %v", err)
	}
}

func TestANewFileStandsWhereItsPackageIs(t *testing.T) {
	l := repository(t, map[string]string{
		"patches/v1.33/go.mod":         pin133,
		"patches/v1.33/new/pkg/own.go": "",
		"patches/new/pkg/apis/a.go":    "",
		"pkg/kubelet/envfile/a.go":     "",
	})
	s, err := Load(l, "v1.33")
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"pkg/own.go":                     "patches/v1.33/new",
		"pkg/apis/a.go":                  "patches/new",
		"pkg/apis/b.go":                  "patches/new",
		"pkg/kubelet/b.go":               "patches/new",
		"pkg/kubelet/envfile/a.go":       ".",
		"pkg/kubelet/envfile/b.go":       ".",
		"pkg/kubelet/envfile/testdata/b": ".",
	} {
		if folder := s.NewFileFolder(file); folder != filepath.Join(l.Root, want) {
			t.Errorf("%s is in %s, want %s", file, folder, want)
		}
	}
}

func TestNewFilesOfTektonAreCheckedToo(t *testing.T) {
	l := repository(t, map[string]string{
		"patches/v1.33/go.mod":        pin133,
		"patches/tekton/v1.10/go.mod": pinTekton,
		"patches/tekton/new/a.go":     "",
	})
	if err := CheckNewFiles(l); err == nil || !strings.Contains(err.Error(), "patches/tekton/new/a.go") {
		t.Errorf("a new file that no patch adds: %v", err)
	}
}

func TestLoadNamesTheKnownSeriesForAnUnknownOne(t *testing.T) {
	l := repository(t, map[string]string{"patches/v1.33/go.mod": pin133})
	for _, name := range []string{"v1.99", "", "../v1.33", "v1.33/"} {
		_, err := Load(l, name)
		if !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "v1.33") {
			t.Errorf("Load(%q): %v", name, err)
		}
	}
}

func TestLoadRefusesAPinThatIsNotOfTheMinor(t *testing.T) {
	for name, text := range map[string]string{
		"another minor": strings.Replace(pin133, "v1.33.13", "v1.32.13", 1),
		"no release":    "module x\n",
		"not a go.mod":  "requires what",
	} {
		l := repository(t, map[string]string{"patches/v1.33/go.mod": text})
		if _, err := Load(l, "v1.33"); err == nil || errors.Is(err, ErrUnknown) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

func TestOlderAreThoseThatAKubeletMayHave(t *testing.T) {
	files := map[string]string{}
	for _, name := range []string{"v1.9", "v1.29", "v1.30", "v1.32", "v1.33", "v1.34"} {
		files["patches/"+name+"/go.mod"] = "module x\n"
	}
	l := repository(t, files)
	for _, test := range []struct {
		name string
		most int
		want []string
	}{
		{"v1.33", SupportedSkew, []string{"v1.30", "v1.32"}},
		{"v1.33", 1, []string{"v1.32"}},
		{"v1.33", 0, []string{}},
		{"v1.32", SupportedSkew, []string{"v1.29", "v1.30"}},
		{"v1.29", SupportedSkew, []string{}},
	} {
		if got := (Series{Name: test.name}).Older(l, test.most); !slices.Equal(got, test.want) {
			t.Errorf("%s, at most %d: %q, want %q", test.name, test.most, got, test.want)
		}
	}
}

func TestNewerAreTheMinorsAfter(t *testing.T) {
	files := map[string]string{}
	for _, name := range []string{"v1.9", "v1.32", "v1.33", "v1.34", "v1.36"} {
		files["patches/"+name+"/go.mod"] = "module x\n"
	}
	l := repository(t, files)
	for name, want := range map[string][]string{"v1.32": {"v1.33", "v1.34"}, "v1.33": {"v1.34"}, "v1.34": nil, "v1.36": nil} {
		if got := (Series{Name: name}).Newer(l); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestPatchesOfThisRepositoryAddAllItsNewFiles(t *testing.T) {
	if err := CheckNewFiles(layout.MustFind()); err != nil {
		t.Error(err)
	}
}
