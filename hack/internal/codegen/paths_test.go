package codegen

import "testing"

func TestIsGenerated(t *testing.T) {
	tests := []struct {
		path string
		want bool
	}{
		{"staging/src/k8s.io/api/core/v1/generated.pb.go", true},
		{"staging/src/k8s.io/api/core/v1/generated.proto", true},
		{"staging/src/k8s.io/api/core/v1/types_swagger_doc_generated.go", true},
		{"staging/src/k8s.io/api/core/v1/zz_generated.deepcopy.go", true},
		{"staging/src/k8s.io/api/core/v1/zz_generated.model_name.go", true},
		{"staging/src/k8s.io/api/core/v1/zz_generated.prerelease-lifecycle.go", true},
		{"pkg/apis/core/zz_generated.deepcopy.go", true},
		{"pkg/apis/core/v1/zz_generated.conversion.go", true},
		{"pkg/apis/core/v1/zz_generated.defaults.go", true},
		{"pkg/apis/core/v1/zz_generated.validations.go", true},
		{"pkg/generated/openapi/zz_generated.openapi.go", true},
		{"api/openapi-spec/swagger.json", true},
		{"api/openapi-spec/v3/apis__apps__v1_openapi.json", true},
		{"api/discovery/apis__apps__v1.json", true},
		{"staging/src/k8s.io/client-go/applyconfigurations/core/v1/envvarsource.go", true},
		{"staging/src/k8s.io/client-go/applyconfigurations/internal/internal.go", true},
		{"staging/src/k8s.io/client-go/applyconfigurations/utils.go", true},
		{"staging/src/k8s.io/api/testdata/HEAD/core.v1.Pod.json", true},
		{"staging/src/k8s.io/api/testdata/HEAD/core.v1.Pod.pb", true},
		{"staging/src/k8s.io/api/testdata/HEAD/core.v1.Pod.yaml", true},

		{"staging/src/k8s.io/client-go/kubernetes/clientset.go", true},
		{"staging/src/k8s.io/client-go/kubernetes/typed/core/v1/generated_expansion.go", true},
		{"staging/src/k8s.io/client-go/listers/core/v1/expansion_generated.go", true},
		{"staging/src/k8s.io/client-go/informers/factory.go", true},

		{"staging/src/k8s.io/client-go/kubernetes/typed/core/v1/pod_expansion.go", false},
		{"staging/src/k8s.io/client-go/kubernetes/fake/clientset_generated_test.go", false},
		{"staging/src/k8s.io/client-go/kubernetes/import.go", false},
		{"staging/src/k8s.io/client-go/listers/generic_helpers.go", false},
		{"staging/src/k8s.io/client-go/rest/request.go", false},
		{"staging/src/k8s.io/api/core/v1/types.go", false},
		{"staging/src/k8s.io/api/testdata/v1.32.0/core.v1.Pod.json", false},
		{"staging/src/k8s.io/api/testdata/HEAD/README.md", false},
		{"staging/src/k8s.io/client-go/applyconfigurations/doc.go", false},
		{"staging/src/k8s.io/client-go/applyconfigurations/meta/v1/unstructured.go", false},
		{"staging/src/k8s.io/client-go/applyconfigurations/OWNERS", false},
		{"staging/src/k8s.io/cri-api/pkg/apis/runtime/v1/api.pb.go", false},
		{"staging/src/k8s.io/code-generator/examples/crd/apis/example/v1/zz_generated.deepcopy.go", false},
		{"api/api-rules/violation_exceptions.list", false},
		{"api/openapi-spec/README.md", false},
		{"pkg/kubelet/envfile/envfile.go", false},
		{"generated.go", false},
		{"", false},
	}
	for _, tt := range tests {
		if got := IsGenerated(tt.path); got != tt.want {
			t.Errorf("IsGenerated(%q) = %t, want %t", tt.path, got, tt.want)
		}
	}
}
