// Package syntax tests env files with the parser of upstream's kubelet in v1.34, the last
// minor that reads the .env form.
package syntax

import (
	"testing"

	"k8s.io/kubernetes/pkg/kubelet/util/env"
)

// A file for both forms is read as it is to be, see docs/env-file-forms.md.
func TestUpstreamReadsAFileForBothForms(t *testing.T) {
	for key, want := range map[string]string{"HOST": "db.example.com", "PORT": "5432"} {
		if got, err := env.ParseEnv("../../../corpus/both-forms.env", key); err != nil || got != want {
			t.Errorf("%s is %q (%v), want %q", key, got, err, want)
		}
	}
}
