package describe

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestDescribeContainerEnvVarsFromFiles(t *testing.T) {
	container := corev1.Container{Env: []corev1.EnvVar{
		{Name: "REQUIRED", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{
			VolumeName: "config", Path: "dir/config.env", Key: "KEY",
		}}},
		{Name: "IF_THERE", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{
			VolumeName: "config", Path: "other.env", Key: "OTHER", Optional: ptr.To(true),
		}}},
	}}
	out := &bytes.Buffer{}
	describeContainerEnvVars(container, nil, NewPrefixWriter(out))

	for _, want := range []string{
		"REQUIRED:\t<set to the key 'KEY' of file 'dir/config.env' in volume 'config'>\tOptional: false\n",
		"IF_THERE:\t<set to the key 'OTHER' of file 'other.env' in volume 'config'>\tOptional: true\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in:\n%s", want, out.String())
		}
	}
}
