package env

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestEnvVarFromFile(t *testing.T) {
	source := &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "config", Path: "dir/config.env", Key: "KEY"}}

	reference := GetEnvVarRefString(source)
	if want := "file dir/config.env in volume config, key KEY"; reference != want {
		t.Errorf("want %q, got %q", want, reference)
	}
	optional := true
	source.FileKeyRef.Optional = &optional
	reference = GetEnvVarRefString(source)
	if want := "file dir/config.env in volume config, key KEY, optional"; reference != want {
		t.Errorf("want %q, got %q", want, reference)
	}
	// The file is on a node: not even --resolve can know its value.
	_, err := GetEnvVarRefValue(nil, "default", NewResourceStore(), source, nil, nil)
	if err == nil || !strings.Contains(err.Error(), reference) {
		t.Errorf("want an error that names %q, got: %v", reference, err)
	}
}
