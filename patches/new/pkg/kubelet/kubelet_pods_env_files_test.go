package kubelet

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	"k8s.io/utils/ptr"
)

// environmentFrom makes the environment of a container that takes K from the env file,
// or from one that is missing.
func environmentFrom(t *testing.T, file string) ([]kubecontainer.EnvVar, error) {
	t.Helper()
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EnvFiles, true)
	root := t.TempDir()
	if file != "" {
		require.NoError(t, os.WriteFile(filepath.Join(root, "config.env"), []byte(file), 0o600))
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{kubetypes.ConfigSourceAnnotationKey: kubetypes.FileSource}},
		Spec:       v1.PodSpec{EnableServiceLinks: ptr.To(false)},
	}
	container := &v1.Container{Name: "main", Env: []v1.EnvVar{{Name: "V", ValueFrom: &v1.EnvVarSource{
		FileKeyRef: &v1.FileKeySelector{VolumeName: "config", Path: "config.env", Key: "K"},
	}}}}
	volumes := kubecontainer.VolumeMap{"config": {Mounter: &stubVolume{path: root}}}
	kl := &Kubelet{podWorkers: &fakePodWorkers{}}
	return kl.environment(pod, container, volumes)
}

// On Windows the reader of the release stays. It takes the first of two definitions.
func TestReaderOfEnvFilesElsewhereThanOnLinux(t *testing.T) {
	confined := envFilesAreConfined
	defer func() { envFilesAreConfined = confined }()
	envFilesAreConfined = false
	got, err := environmentFrom(t, "K='first'\nK='second'\n")
	require.Nil(t, err)
	require.Len(t, got, 1)
	assert.Contains(t, got[0].Value, "first") // with the quotes in v1.34
}

// The event of each retry says it.
//
//nolint:logcheck // v1.34 logs without a context
func TestWaitingForAnEnvFileLogsNoError(t *testing.T) {
	defer klog.CaptureState().Restore()
	var logs bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&logs)
	_, err := environmentFrom(t, "")
	require.NotNil(t, err)
	klog.Flush()
	if envFilesAreConfined {
		assert.NotRegexp(t, "(?m)^[WEF]", logs.String()) // the severity begins a line
	}
}
