package codegen

import (
	"maps"
	"slices"
	"testing"
)

// conversionTree adds internal types, and the packages that convert to them.
func conversionTree(t *testing.T) string {
	t.Helper()
	files := fakeRelease()
	maps.Copy(files, map[string]string{
		"pkg/apis/core/doc.go":      "// +k8s:deepcopy-gen=package\n\npackage core\n",
		"pkg/apis/core/types.go":    "package core\n\ntype PodSpec struct{ Name string }\n\ntype Secret struct{}\n",
		"pkg/apis/core/v1/doc.go":   "// +k8s:conversion-gen=k8s.io/kubernetes/pkg/apis/core\n// +k8s:conversion-gen-external-types=k8s.io/api/core/v1\n\npackage v1\n",
		"pkg/apis/apps/v1/doc.go":   "// +k8s:defaulter-gen=TypeMeta\n// +k8s:defaulter-gen-input=k8s.io/api/apps/v1\n\npackage v1\n",
		"pkg/apis/rbac/v1/doc.go":   "// +k8s:conversion-gen=k8s.io/kubernetes/pkg/apis/rbac\n// +k8s:conversion-gen-external-types=k8s.io/api/rbac/v1\n\npackage v1\n",
		"pkg/kubelet/testdata/a.go": "// +k8s:deepcopy-gen=package\n\npackage a\n",
	})
	return fakeTree(t, files)
}

func TestReach(t *testing.T) {
	tests := []struct {
		name string
		edit map[string]string
		// The packages for which the generators run.
		deepcopy, conversion, defaults []string
	}{
		{
			name:       "a type of a package that another one imports",
			edit:       map[string]string{coreTypes: "package v1\n\ntype Pod struct{ Spec PodSpec }\n\ntype PodSpec struct{ Name, Other string }\n\ntype Node struct{}\n"},
			deepcopy:   []string{"k8s.io/api/apps/v1", "k8s.io/api/core/v1"},
			conversion: []string{"k8s.io/kubernetes/pkg/apis/core/v1"},
			defaults:   []string{"k8s.io/kubernetes/pkg/apis/apps/v1"},
		},
		{
			name:       "a type of a package that no other one imports",
			edit:       map[string]string{rbacTypes: "package v1\n\ntype Role struct{ Name string }\n"},
			deepcopy:   []string{"k8s.io/api/rbac/v1"},
			conversion: []string{"k8s.io/kubernetes/pkg/apis/rbac/v1"},
		},
		{
			name:       "an internal type",
			edit:       map[string]string{"pkg/apis/core/types.go": "package core\n\ntype PodSpec struct{ Name, Other string }\n\ntype Secret struct{}\n"},
			deepcopy:   []string{"k8s.io/kubernetes/pkg/apis/core"},
			conversion: []string{"k8s.io/kubernetes/pkg/apis/core/v1"},
		},
		{
			name:     "a function for defaults",
			edit:     map[string]string{"pkg/apis/apps/v1/defaults.go": "package v1\n\nfunc SetDefaults_Deployment() {}\n"},
			defaults: []string{"k8s.io/kubernetes/pkg/apis/apps/v1"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := conversionTree(t)
			write(t, tree, tt.edit)
			r := reachOf(t, Options{Tree: tree, Base: released})
			for marker, want := range map[string][]string{"deepcopy-gen": tt.deepcopy, "conversion-gen": tt.conversion, "defaulter-gen": tt.defaults} {
				if got := importPaths(r.marked(marker, r.isAffected)); !slices.Equal(got, want) {
					t.Errorf("%s runs for %q, want %q", marker, got, want)
				}
			}
		})
	}
}

func TestReachOfAGeneratorIsEverything(t *testing.T) {
	tree := conversionTree(t)
	write(t, tree, map[string]string{boilerplate: "// new\n"})
	r := reachOf(t, Options{Tree: tree, Base: released})
	if !maps.Equal(r.affected, r.touched) || len(r.affected) != 7 {
		t.Errorf("affected: %v, want all 7 packages that have markers", slices.Sorted(maps.Keys(r.affected)))
	}
}

func TestReachOfClients(t *testing.T) {
	tests := []struct {
		name  string
		types string
		want  bool
	}{
		{"a new resource", "package v1\n\n// +genclient\n\ntype Role struct{}\n", true},
		{"a new field", "package v1\n\ntype Role struct{ Name string }\n", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := conversionTree(t)
			write(t, tree, map[string]string{rbacTypes: tt.types})
			r := reachOf(t, Options{Tree: tree, Base: released})
			if r.clients != tt.want {
				t.Errorf("clients are generated: %t, want %t", r.clients, tt.want)
			}
		})
	}
}

func TestReachOfWhatIsServed(t *testing.T) {
	for file, want := range map[string]bool{"pkg/controlplane/instance.go": true, "pkg/kubelet/kubelet.go": false} {
		tree := conversionTree(t)
		write(t, tree, map[string]string{file: "package edited\n"})
		if r := reachOf(t, Options{Tree: tree, Base: released}); r.served != want {
			t.Errorf("%s: specs are generated: %t, want %t", file, r.served, want)
		}
	}
}

func reachOf(t *testing.T, o Options) *reach {
	t.Helper()
	c, err := findChange(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := findReach(t.Context(), o, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
