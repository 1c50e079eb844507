package manifests

import (
	"bytes"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

// strictEnvNames is the manifest that keeps KEP-4369's strict rule for the namespaces
// that have the label.
const strictEnvNames = "strict-env-names.yaml"

// Policy returns the ValidatingAdmissionPolicy that keeps the strict rule for the names
// of variables in chosen namespaces (KEP-4369, "Alternatives"), and its binding, whose
// namespaceSelector says in which. As with Pod, an unknown field is an error.
func Policy() (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding, error) {
	data, err := files.ReadFile(strictEnvNames)
	if err != nil {
		return nil, nil, fmt.Errorf("manifest %s: %w", strictEnvNames, err)
	}
	documents := bytes.Split(data, []byte("\n---\n"))
	if len(documents) != 2 {
		return nil, nil, fmt.Errorf("manifest %s has %d documents, want a policy and its binding", strictEnvNames, len(documents))
	}
	policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	for i, object := range []any{policy, binding} {
		if err := yaml.UnmarshalStrict(documents[i], object); err != nil {
			return nil, nil, fmt.Errorf("manifest %s: %w", strictEnvNames, err)
		}
	}
	return policy, binding, nil
}
