package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/network/dns"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	"k8s.io/utils/ptr"
)

func TestSubPathExprIsExpanded(t *testing.T) {
	env := []kubecontainer.EnvVar{{Name: "POD", Value: "web-0"}}
	subPath, err := expandSubPathExpr(v1.VolumeMount{SubPathExpr: "logs/$(POD)"}, env)
	require.NoError(t, err)
	assert.Equal(t, "logs/web-0", subPath)
	_, err = expandSubPathExpr(v1.VolumeMount{SubPathExpr: "logs/$(MISSING)"}, env)
	assert.ErrorContains(t, err, "MISSING")
}

func TestErrorsOfSubPathsShowNoValueOfAVariable(t *testing.T) {
	testKubelet := newTestKubelet(t, false /* controllerAttachDetachEnabled */)
	defer testKubelet.Cleanup()
	kubelet := testKubelet.kubelet
	kubelet.kubeClient = nil
	kubelet.serviceLister = nil
	kubelet.dnsConfigurer = &dns.Configurer{}
	pod := &v1.Pod{
		// A static pod waits for no services.
		ObjectMeta: metav1.ObjectMeta{UID: "12345678", Name: "foo", Namespace: "test", Annotations: map[string]string{kubetypes.ConfigSourceAnnotationKey: kubetypes.FileSource}},
		Spec: v1.PodSpec{
			EnableServiceLinks: ptr.To(false),
			Containers:         []v1.Container{{Name: "main", VolumeMounts: []v1.VolumeMount{{Name: "data", MountPath: "/data"}}}},
			Volumes:            []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}},
		},
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go runVolumes(ctx, kubelet)
	kubelet.podManager.SetPods([]*v1.Pod{pod})
	require.NoError(t, kubelet.volumeManager.WaitForAttachAndMount(ctx, pod))

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
			container := &v1.Container{Name: "main", VolumeMounts: []v1.VolumeMount{tc.mount}, Env: []v1.EnvVar{{Name: "SECRET", Value: tc.value}}}

			_, err := runContainerOptions(kubelet, pod, container)

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
