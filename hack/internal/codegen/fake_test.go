package codegen

import (
	"os"
	"path/filepath"
	"testing"

	"podenv.dev/hack/internal/run"
)

// released is the commit of the release in a fakeTree.
const released = "released"

// fakeTree creates a git repository with files and commits them as the release.
func fakeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "--quiet", "--initial-branch=main")
	write(t, dir, files)
	commit(t, dir, "release")
	git(t, dir, "tag", released)
	return dir
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	identity := []string{"-C", dir, "-c", "user.name=test", "-c", "user.email=test@podenv.dev", "-c", "commit.gpgsign=false"}
	out, err := run.Command(t.Context(), "git", append(identity, args...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func commit(t *testing.T, dir, message string) {
	t.Helper()
	git(t, dir, "add", "--all")
	git(t, dir, "commit", "--quiet", "--message", message)
}

// write writes files below dir. Empty content deletes the file.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(dir, name)
		if content == "" {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const (
	coreTypes = "staging/src/k8s.io/api/core/v1/types.go"
	appsTypes = "staging/src/k8s.io/api/apps/v1/types.go"
	rbacTypes = "staging/src/k8s.io/api/rbac/v1/types.go"
	kubelet   = "pkg/kubelet/kubelet.go"
)

// fakeRelease is a tree of three API packages, of which apps imports core, and a package that
// no generator reads.
func fakeRelease() map[string]string {
	return map[string]string{
		"staging/src/k8s.io/api/core/v1/doc.go": "// +k8s:deepcopy-gen=package\n\npackage v1\n",
		coreTypes:                               "package v1\n\ntype Pod struct{ Spec PodSpec }\n\ntype PodSpec struct{ Name string }\n\ntype Node struct{}\n",
		"staging/src/k8s.io/api/core/v1/zz_generated.deepcopy.go": "package v1\n\n// released\n",
		"staging/src/k8s.io/api/apps/v1/doc.go":                   "// +k8s:deepcopy-gen=package\n\npackage v1\n",
		appsTypes:                                                 "package v1\n\nimport corev1 \"k8s.io/api/core/v1\"\n\ntype Deployment struct{ Template corev1.PodSpec }\n",
		"staging/src/k8s.io/api/apps/v1/zz_generated.deepcopy.go": "package v1\n\n// released\n",
		"staging/src/k8s.io/api/rbac/v1/doc.go":                   "// +k8s:deepcopy-gen=package\n\npackage v1\n",
		rbacTypes:                                                 "package v1\n\ntype Role struct{}\n",
		"staging/src/k8s.io/api/rbac/v1/zz_generated.deepcopy.go": "package v1\n\n// released\n",
		kubelet: "package kubelet\n\nfunc run() {}\n",
	}
}
