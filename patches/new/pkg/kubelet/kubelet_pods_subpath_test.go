package kubelet

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "k8s.io/api/core/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

func TestErrorsOfSubPathsShowNoValueOfAVariable(t *testing.T) {
	testCases := []struct {
		name  string
		mount v1.VolumeMount
		value string
		want  string
	}{
		{
			name:  "an absolute path",
			mount: v1.VolumeMount{SubPathExpr: "$(SECRET)"},
			value: "/s3cr3t",
			want:  "subPathExpr `$(SECRET)` must not expand to an absolute path",
		},
		{
			name:  "a path that steps back",
			mount: v1.VolumeMount{SubPathExpr: "dir/$(SECRET)"},
			value: "../s3cr3t",
			want:  "unable to provision subPathExpr `dir/$(SECRET)`: what it expands to must not contain '..'",
		},
		{
			name:  "a path without variables is shown",
			mount: v1.VolumeMount{SubPath: "dir/../.."},
			want:  "unable to provision SubPath `dir/../..`: must not contain '..'",
		},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			tc.mount.Name, tc.mount.MountPath = "data", "/data"
			container := &v1.Container{Name: "main", VolumeMounts: []v1.VolumeMount{tc.mount}}
			volumes := kubecontainer.VolumeMap{"data": {Mounter: &stubVolume{path: t.TempDir()}}}
			env := []kubecontainer.EnvVar{{Name: "SECRET", Value: tc.value}}

			err := mountsError(t, container, volumes, env)

			require.Error(t, err)
			assert.Equal(t, tc.want, err.Error())
		})
	}
}

// The log has the errors of a subPath, and shows those of a subPathExpr as the pod
// has it.
func TestLogOfSubPathsShowsNoValueOfAVariable(t *testing.T) {
	const secret = "s3cr3t"
	expr, literal := v1.VolumeMount{SubPathExpr: "dir/$(SECRET)"}, v1.VolumeMount{SubPath: "dir/" + secret}
	tooLong := &os.PathError{Op: "mkdir", Path: "/volume/dir/" + secret, Err: syscall.ENAMETOOLONG}
	unknown := errors.New("cannot open /volume/dir/" + secret)

	assert.Equal(t, "subPathExpr `dir/$(SECRET)`: file name too long", subPathError(fmt.Errorf("context: %w", tooLong), expr).Error())
	assert.Equal(t, "subPathExpr `dir/$(SECRET)` cannot be used with the values of its variables", subPathError(unknown, expr).Error())
	assert.Equal(t, unknown, subPathError(unknown, literal))

	assert.Equal(t, "/volume/dir/$(SECRET)", shownHostPath("/volume", "/volume/dir/"+secret, expr))
	assert.Equal(t, "/volume/dir/"+secret, shownHostPath("/volume", "/volume/dir/"+secret, literal))
}
