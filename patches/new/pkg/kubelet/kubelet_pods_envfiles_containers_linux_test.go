//go:build linux

package kubelet

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/network/dns"
	"k8s.io/kubernetes/pkg/volume/util"
	"k8s.io/utils/ptr"
)

// envFileContainers returns one container of each kind that takes KEY from an
// env file in the volume config, which only the init container setup mounts.
func envFileContainers(pod *v1.Pod) map[string]*v1.Container {
	container := func(name string) v1.Container {
		return v1.Container{Name: name, Env: []v1.EnvVar{fileKeyRef("PASSWORD", "config", "config.env", "KEY")}}
	}
	sidecar := container("sidecar")
	sidecar.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
	pod.Spec.InitContainers = []v1.Container{
		{Name: "setup", VolumeMounts: []v1.VolumeMount{{Name: "config", MountPath: "/data"}}},
		container("init"),
		sidecar,
	}
	pod.Spec.Containers = []v1.Container{container("main")}
	pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon(container("debug"))}}
	return map[string]*v1.Container{
		"init":      &pod.Spec.InitContainers[1],
		"sidecar":   &pod.Spec.InitContainers[2],
		"container": &pod.Spec.Containers[0],
		"ephemeral": (*v1.Container)(&pod.Spec.EphemeralContainers[0].EphemeralContainerCommon),
	}
}

// The volume manager mounts a volume if any container of the pod does: the
// others find it, on a kubelet that has no API server too. What they take from
// the file is in their environment and in no log.
func TestEveryKindOfContainerHasEnvFiles(t *testing.T) {
	featurestest.SetGate(t, features.EnvFiles, true)
	testKubelet := newTestKubelet(t, false /* controllerAttachDetachEnabled */)
	defer testKubelet.Cleanup()
	kubelet := testKubelet.kubelet
	kubelet.kubeClient = nil
	kubelet.serviceLister = nil
	kubelet.dnsConfigurer = &dns.Configurer{}

	pod := podWithEmptyDirs("config")
	pod.UID, pod.Name, pod.Namespace = "12345678", "foo", "test"
	pod.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: ptr.To(int64(os.Getuid()))}
	containers := envFileContainers(pod)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go runVolumes(ctx, kubelet)
	kubelet.podManager.SetPods([]*v1.Pod{pod})
	require.NoError(t, kubelet.volumeManager.WaitForAttachAndMount(ctx, pod))
	root := kubelet.volumeManager.GetMountedVolumesForPod(util.GetUniquePodName(pod))["config"].Mounter.GetPath()
	logs := captureLogs(t)

	// A container that is started again reads the file again.
	for _, secret := range []string{"s3cr3t", "n3w s3cr3t"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, "config.env"), []byte("KEY="+secret+"\n"), 0o600))
		for kind, container := range containers {
			t.Run(fmt.Sprintf("%s, %s", kind, secret), func(t *testing.T) {
				opts, err := runContainerOptions(kubelet, pod, container)

				require.NoError(t, err)
				assert.Equal(t, []kubecontainer.EnvVar{{Name: "PASSWORD", Value: secret}}, opts.Envs)
				assert.Empty(t, opts.Mounts, "the volume must not be mounted")
			})
		}
	}
	logged := logs()
	require.Contains(t, logged, "Creating hosts mount for container")
	assert.NotContains(t, logged, "s3cr3t")
}

// captureLogs logs at the highest verbosity that the kubelet has. The function
// that it returns ends that and returns what was logged.
func captureLogs(t *testing.T) func() string {
	t.Helper()
	state := klog.CaptureState()
	t.Cleanup(state.Restore)
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	for name, value := range map[string]string{"v": "10", "logtostderr": "false", "alsologtostderr": "false", "stderrthreshold": "FATAL"} {
		require.NoError(t, flags.Set(name, value))
	}
	var logs bytes.Buffer
	klog.SetOutput(&logs)
	return func() string {
		klog.Flush()
		state.Restore()
		return logs.String()
	}
}
