package kuberuntime

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	compbasemetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	containertest "k8s.io/kubernetes/pkg/kubelet/container/testing"
	"k8s.io/kubernetes/pkg/kubelet/metrics"
	"k8s.io/utils/ptr"
)

func envFilePod() *v1.Pod {
	container := func(name string) v1.Container {
		return v1.Container{Name: name, Image: "busybox", ImagePullPolicy: v1.PullIfNotPresent}
	}
	sidecar := container("sidecar")
	sidecar.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: "12345678", Name: "foo", Namespace: "new"},
		Spec: v1.PodSpec{
			InitContainers: []v1.Container{sidecar},
			Containers:     []v1.Container{container("main")},
			EphemeralContainers: []v1.EphemeralContainer{{
				EphemeralContainerCommon: v1.EphemeralContainerCommon(container("debug")),
			}},
		},
	}
}

// A container whose environment cannot be made waits and is tried again,
// whatever kind of container it is, and the metric that the KEP names moves.
func TestContainerWaitsForItsEnvFile(t *testing.T) {
	registry := compbasemetrics.NewKubeRegistry()
	registry.MustRegister(metrics.StartedContainersErrorsTotal)
	for name, tc := range map[string]struct {
		containerType string
		tweak         func(*v1.Pod)
	}{
		"init": {containerType: "init_container", tweak: func(pod *v1.Pod) {
			pod.Spec.InitContainers[0].Name, pod.Spec.InitContainers[0].RestartPolicy = "init", nil
		}},
		"sidecar": {containerType: "init_container"},
		"main":    {containerType: "container"},
		"debug":   {containerType: "ephemeral_container"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, m, err := createTestRuntimeManager()
			require.NoError(t, err)
			broken := name
			m.runtimeHelper = &optionsHelper{RuntimeHelper: &containertest.FakeRuntimeHelper{}, options: func(container *v1.Container) (*kubecontainer.RunContainerOptions, error) {
				if container.Name == broken {
					return nil, errors.New("env file is missing")
				}
				return &kubecontainer.RunContainerOptions{}, nil
			}}
			recorder := record.NewFakeRecorder(100)
			m.recorder = recorder
			metrics.StartedContainersErrorsTotal.Reset()
			pod := envFilePod()
			if tc.tweak != nil {
				tc.tweak(pod)
			}
			isStarted := func() bool {
				status, err := m.GetPodStatus(context.Background(), pod.UID, pod.Name, pod.Namespace)
				require.NoError(t, err)
				return status.FindContainerStatusByName(name) != nil
			}

			// The first sync makes the sandbox, and ephemeral containers need one.
			syncPod(t, m, pod)
			result := syncPod(t, m, pod)

			require.False(t, isStarted(), "the container was started")
			assert.ErrorContains(t, result.Error(), "env file is missing")
			assert.ErrorContains(t, result.Error(), ErrCreateContainerConfig.Error())
			assert.Contains(t, drain(recorder), "Warning Failed Error: env file is missing")
			failures, err := testutil.GetCounterMetricValue(
				metrics.StartedContainersErrorsTotal.WithLabelValues(tc.containerType, ErrCreateContainerConfig.Error()))
			require.NoError(t, err)
			assert.Positive(t, failures)
			families, err := registry.Gather()
			require.NoError(t, err)
			require.Len(t, families, 1)
			assert.Len(t, families[0].Metric, 1, "label values")

			broken = ""
			result = syncPod(t, m, pod)

			assert.NoError(t, result.Error())
			assert.True(t, isStarted(), "the container was not started once its file was right")
		})
	}
}

func syncPod(t *testing.T, m *kubeGenericRuntimeManager, pod *v1.Pod) kubecontainer.PodSyncResult {
	t.Helper()
	status, err := m.GetPodStatus(context.Background(), pod.UID, pod.Name, pod.Namespace)
	require.NoError(t, err)
	return m.SyncPod(context.Background(), pod, status, nil, flowcontrol.NewBackOff(time.Second, time.Minute))
}

func drain(recorder *record.FakeRecorder) []string {
	var events []string
	for len(recorder.Events) > 0 {
		events = append(events, <-recorder.Events)
	}
	return events
}

// A value may be a secret that a workload wrote to an env file: it goes to the
// runtime and nowhere else, whether the container starts or not.
func TestValuesOfVariablesAreNotLogged(t *testing.T) {
	const secret = "s3cr3t"
	for name, fail := range map[string]string{
		"a container that starts":              "",
		"a container that cannot be created":   "CreateContainer",
		"a container that cannot be started":   "StartContainer",
		"a container that cannot be inspected": "ContainerStatus",
	} {
		t.Run(name, func(t *testing.T) {
			logs := captureLogs(t)
			runtime, _, m, err := createTestRuntimeManager()
			require.NoError(t, err)
			m.runtimeHelper = &optionsHelper{RuntimeHelper: &containertest.FakeRuntimeHelper{}, options: func(*v1.Container) (*kubecontainer.RunContainerOptions, error) {
				return &kubecontainer.RunContainerOptions{Envs: []kubecontainer.EnvVar{{Name: "PASSWORD", Value: secret}}}, nil
			}}
			recorder := record.NewFakeRecorder(100)
			m.recorder = recorder
			if fail != "" {
				runtime.InjectError(fail, errors.New("out of order"))
			}
			pod := envFilePod()

			result := m.SyncPod(context.Background(), pod, &kubecontainer.PodStatus{}, nil, flowcontrol.NewBackOff(time.Second, time.Minute))

			logged := logs()
			require.Contains(t, logged, "Creating container in pod")
			assert.NotContains(t, logged, secret)
			assert.NotContains(t, strings.Join(drain(recorder), "\n"), secret)
			assert.NotContains(t, fmt.Sprintf("%+v", result), secret)
		})
	}
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
