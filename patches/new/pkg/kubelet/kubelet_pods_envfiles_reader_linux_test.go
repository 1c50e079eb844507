//go:build linux

package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
	"k8s.io/kubernetes/pkg/kubelet/configmap"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	containertest "k8s.io/kubernetes/pkg/kubelet/container/testing"
	"k8s.io/kubernetes/pkg/kubelet/envfile"
	"k8s.io/kubernetes/pkg/kubelet/metrics"
	"k8s.io/kubernetes/pkg/kubelet/volumemanager"
	"k8s.io/utils/ptr"
)

// stubVolumeManager has mounted volumes that give a pod groups.
type stubVolumeManager struct {
	volumemanager.VolumeManager
	groups []int64
}

func (m *stubVolumeManager) GetExtraSupplementalGroupsForPod(*v1.Pod) []int64 { return m.groups }

// imageUserRuntime has images of one user and counts how often it is asked.
type imageUserRuntime struct {
	*containertest.FakeRuntime
	uid   *int64
	err   error
	calls int
	// before is called before it answers.
	before func()
}

func (r *imageUserRuntime) GetImageUID(context.Context, string) (*int64, error) {
	r.calls++
	if r.before != nil {
		r.before()
	}
	return r.uid, r.err
}

// kubeletWithEnvFiles returns a kubelet whose containers run as the user of the test.
func kubeletWithEnvFiles(tb testing.TB) *Kubelet {
	featurestest.SetGate(tb, features.EnvFiles, true)
	return &Kubelet{
		containerRuntime: &imageUserRuntime{uid: ptr.To(int64(os.Getuid()))},
		volumeManager:    &stubVolumeManager{},
		podWorkers:       &fakePodWorkers{},
	}
}

// envFilesOf returns the env files of one start of the pod's container, in the volume
// config at root.
func envFilesOf(kl *Kubelet, pod *v1.Pod, container *v1.Container, root string) *containerEnvFiles {
	return kl.newContainerEnvFiles(pod, container, mountedAt(root))
}

func TestEnvFileReader(t *testing.T) {
	id := func(id int64) *int64 { return &id }
	testCases := []struct {
		name         string
		pod          v1.PodSpec
		container    *v1.SecurityContext
		volumeGroups []int64
		imageUID     *int64
		want         envfile.Credentials
		wantCalls    int
	}{
		{
			name:      "nothing set, an image without a user: root",
			imageUID:  id(0),
			want:      envfile.Credentials{UID: id(0)},
			wantCalls: 1,
		},
		{
			name:      "nothing set, an image with a numeric user: its group is not known",
			imageUID:  id(1000),
			want:      envfile.Credentials{UID: id(1000)},
			wantCalls: 1,
		},
		{
			name:      "nothing set, an image with a user name: neither user nor group is known",
			wantCalls: 1,
		},
		{
			name: "the pod's user and group, and the image is not asked for",
			pod:  v1.PodSpec{SecurityContext: &v1.PodSecurityContext{RunAsUser: id(1), RunAsGroup: id(2)}},
			want: envfile.Credentials{UID: id(1), GID: id(2)},
		},
		{
			name:      "the container's user and group win over the pod's",
			pod:       v1.PodSpec{SecurityContext: &v1.PodSecurityContext{RunAsUser: id(1), RunAsGroup: id(2)}},
			container: &v1.SecurityContext{RunAsUser: id(3), RunAsGroup: id(4)},
			want:      envfile.Credentials{UID: id(3), GID: id(4)},
		},
		{
			name:      "the container's user 0 wins over the pod's",
			pod:       v1.PodSpec{SecurityContext: &v1.PodSecurityContext{RunAsUser: id(1)}},
			container: &v1.SecurityContext{RunAsUser: id(0)},
			want:      envfile.Credentials{UID: id(0)},
		},
		{
			name:      "the pod's group stays with the container's user",
			pod:       v1.PodSpec{SecurityContext: &v1.PodSecurityContext{RunAsUser: id(1), RunAsGroup: id(2)}},
			container: &v1.SecurityContext{RunAsUser: id(3)},
			want:      envfile.Credentials{UID: id(3), GID: id(2)},
		},
		{
			name:      "a group without a user goes with the image's user",
			container: &v1.SecurityContext{RunAsGroup: id(2)},
			imageUID:  id(1000),
			want:      envfile.Credentials{UID: id(1000), GID: id(2)},
			wantCalls: 1,
		},
		{
			name: "fsGroup, the pod's groups and those of its volumes",
			pod: v1.PodSpec{SecurityContext: &v1.PodSecurityContext{
				RunAsUser: id(1), FSGroup: id(10), SupplementalGroups: []int64{20, 30},
			}},
			volumeGroups: []int64{40},
			want:         envfile.Credentials{UID: id(1), Groups: []int64{40, 10, 20, 30}},
		},
		{
			name:      "a user namespace",
			pod:       v1.PodSpec{HostUsers: ptr.To(false)},
			imageUID:  id(0),
			want:      envfile.Credentials{UID: id(0), UserNamespace: true, IDsPerPod: (&Kubelet{}).envFileIDsPerPod()},
			wantCalls: 1,
		},
		{
			name:      "the node's user namespace",
			pod:       v1.PodSpec{HostUsers: ptr.To(true)},
			container: &v1.SecurityContext{RunAsUser: id(0)},
			want:      envfile.Credentials{UID: id(0)},
		},
	}
	featurestest.SetGate(t, features.UserNamespacesSupport, true)
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			runtime := &imageUserRuntime{uid: tc.imageUID}
			kl := &Kubelet{containerRuntime: runtime, volumeManager: &stubVolumeManager{groups: tc.volumeGroups}}

			got, err := kl.envFileReader(context.Background(), &v1.Pod{Spec: tc.pod}, &v1.Container{SecurityContext: tc.container})

			require.NoError(t, err)
			assert.Equal(t, &tc.want, got)
			assert.Equal(t, tc.wantCalls, runtime.calls, "calls of the container runtime")
		})
	}
}

// With the gate off the pod has no user namespace, whatever it asks for.
func TestEnvFileReaderOfAKubeletWithoutUserNamespaces(t *testing.T) {
	if utilfeature.DefaultFeatureGate.DeepCopy().GetAll()[features.UserNamespacesSupport].LockToDefault {
		return // it cannot be off
	}
	featurestest.SetGate(t, features.UserNamespacesSupport, false)
	kl := &Kubelet{volumeManager: &stubVolumeManager{}}
	pod := &v1.Pod{Spec: v1.PodSpec{HostUsers: ptr.To(false), SecurityContext: &v1.PodSecurityContext{RunAsUser: ptr.To[int64](0)}}}

	reader, err := kl.envFileReader(context.Background(), pod, &v1.Container{})

	require.NoError(t, err)
	assert.Equal(t, &envfile.Credentials{UID: ptr.To[int64](0)}, reader)
}

func TestEnvFileReaderOfARuntimeThatFails(t *testing.T) {
	failure := grpcstatus.Error(codes.Unavailable, "dial unix /run/containerd/containerd.sock: connection refused")
	kl := &Kubelet{containerRuntime: &imageUserRuntime{err: failure}, volumeManager: &stubVolumeManager{}}

	_, err := kl.envFileReader(context.Background(), &v1.Pod{}, &v1.Container{Image: "app:v1"})

	assert.EqualError(t, err, `couldn't get the user of image "app:v1" from the container runtime: Unavailable`)
}

// A container sees of an env file what it could read itself: the tests of
// envfile say what that is, this one that it is asked for the right process.
func TestEnvFileMustBeReadableByTheContainer(t *testing.T) {
	featurestest.SetGate(t, features.EnvFiles, true)
	owner, stranger := int64(os.Getuid()), int64(os.Getuid()+1)
	testCases := []struct {
		name      string
		mode      os.FileMode
		runAsUser *int64
		imageUID  *int64
		optional  bool
		wantError bool
	}{
		{name: "its owner by runAsUser", mode: 0o600, runAsUser: &owner},
		{name: "its owner by the image's user", mode: 0o600, imageUID: &owner},
		{name: "another user, and the file is for all", mode: 0o644, runAsUser: &stranger},
		{name: "a user name, and the file is for all", mode: 0o644},
		{name: "another user by runAsUser", mode: 0o600, runAsUser: &stranger, wantError: true},
		{name: "another user by runAsUser, whatever the image's user", mode: 0o600, runAsUser: &stranger, imageUID: &owner, wantError: true},
		{name: "another user by the image", mode: 0o600, imageUID: &stranger, wantError: true},
		{name: "a user name", mode: 0o600, wantError: true},
		{name: "another user, though optional", mode: 0o600, runAsUser: &stranger, optional: true, wantError: true},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			// The root of an emptyDir can be searched by all, that of a
			// temporary directory of a test perhaps not.
			root := volumeOf(t, map[string]string{"config.env": "KEY=value\n"})
			require.NoError(t, os.Chmod(root, 0o777))
			require.NoError(t, os.Chmod(filepath.Join(root, "config.env"), tc.mode))
			env := fileKeyRef("A", "config", "config.env", "KEY", func(selector *v1.FileKeySelector) {
				selector.Optional = &tc.optional
			})
			pod := podWithEmptyDirs("config")
			pod.Spec.Containers = []v1.Container{{
				Name:            "main",
				Env:             []v1.EnvVar{env},
				SecurityContext: &v1.SecurityContext{RunAsUser: tc.runAsUser},
			}}
			kl := &Kubelet{containerRuntime: &imageUserRuntime{uid: tc.imageUID}, volumeManager: &stubVolumeManager{}, podWorkers: &fakePodWorkers{}}

			got, err := kl.environment(pod, &pod.Spec.Containers[0], mountedAt(root))

			if !tc.wantError {
				require.NoError(t, err)
				assert.Equal(t, []kubecontainer.EnvVar{{Name: "A", Value: "value"}}, got)
				return
			}
			require.ErrorIs(t, err, envfile.ErrPermissionDenied)
			assert.ErrorContains(t, err, `env file "config.env"`)
			assert.NotContains(t, err.Error(), root)
		})
	}
}

// The runtime is asked once, and only by the containers that need it.
func TestEnvFileReaderIsAskedForOncePerContainerStart(t *testing.T) {
	featurestest.SetGate(t, features.EnvFiles, true)
	root := volumeOf(t, map[string]string{"1.env": "KEY=value\n", "2.env": "KEY=value\n"})
	for name, tc := range map[string]struct {
		env  []v1.EnvVar
		want int
	}{
		"no env file":        {env: []v1.EnvVar{{Name: "A", Value: "literal"}}, want: 0},
		"nothing is written": {env: []v1.EnvVar{fileKeyRef("A", "unwritten", "1.env", "KEY", optional)}, want: 0},
		"two env files": {env: []v1.EnvVar{
			fileKeyRef("A", "config", "1.env", "KEY"),
			fileKeyRef("B", "config", "2.env", "KEY"),
		}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			runtime := &imageUserRuntime{uid: ptr.To(int64(os.Getuid()))}
			kl := &Kubelet{containerRuntime: runtime, volumeManager: &stubVolumeManager{}, podWorkers: &fakePodWorkers{}}

			_, err := kl.environment(podWithEmptyDirs("config", "unwritten"), &v1.Container{Env: tc.env}, mountedAt(root))

			require.NoError(t, err)
			assert.Equal(t, tc.want, runtime.calls)
		})
	}
}

func TestMakeEnvironmentVariablesFromFiles(t *testing.T) {
	const secret = "s3cr3t"
	files := map[string]string{
		"config.env":     "FIRST=1\nEMPTY=\nTWICE=old\nTWICE=new\nREFERENCE=$(FIRST)\n",
		"relaxed.env":    "9 lives=" + secret + "\n",
		"dir/nested.env": "NESTED=yes\n",
		"broken.env":     "FIRST=1\n" + secret + " is not a declaration\n",
	}
	testCases := []struct {
		name         string
		disabled     bool
		relaxedNames bool
		env          []v1.EnvVar
		want         []kubecontainer.EnvVar
		wantError    []string // parts of it
	}{
		{
			name: "several keys of one file",
			env: []v1.EnvVar{
				fileKeyRef("A", "config", "config.env", "FIRST"),
				fileKeyRef("B", "config", "config.env", "TWICE"),
				fileKeyRef("C", "config", "config.env", "EMPTY"),
			},
			want: []kubecontainer.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "new"}, {Name: "C", Value: ""}},
		},
		{
			name: "a file in a directory and the same key twice",
			env: []v1.EnvVar{
				fileKeyRef("A", "config", "dir/nested.env", "NESTED"),
				fileKeyRef("B", "config", "dir/nested.env", "NESTED"),
			},
			want: []kubecontainer.EnvVar{{Name: "A", Value: "yes"}, {Name: "B", Value: "yes"}},
		},
		{
			name:      "a path and a name that are too long to be shown",
			env:       []v1.EnvVar{fileKeyRef(strings.Repeat("A", 100_000), "config", strings.Repeat("x", 100_000), "KEY")},
			wantError: []string{`variable "` + strings.Repeat("A", 253) + `..."`, `env file "` + strings.Repeat("x", 253) + `..." in volume`},
		},
		{
			name: "over an earlier variable of that name",
			env: []v1.EnvVar{
				{Name: "A", Value: "literal"}, fileKeyRef("A", "config", "config.env", "FIRST"),
				{Name: "B", Value: "literal"}, fileKeyRef("B", "config", "config.env", "MISSING", optional),
			},
			want: []kubecontainer.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "literal"}},
		},
		{
			name: "a value of a file is not expanded, but can be referred to",
			env: []v1.EnvVar{
				fileKeyRef("A", "config", "config.env", "REFERENCE"),
				fileKeyRef("B", "config", "config.env", "FIRST"),
				{Name: "C", Value: "$(A) $(B)"},
			},
			want: []kubecontainer.EnvVar{{Name: "A", Value: "$(FIRST)"}, {Name: "B", Value: "1"}, {Name: "C", Value: "$(FIRST) 1"}},
		},
		{
			name: "what is missing and optional is not set",
			env: []v1.EnvVar{
				fileKeyRef("A", "config", "config.env", "MISSING", optional),
				fileKeyRef("B", "config", "missing.env", "FIRST", optional),
				fileKeyRef("C", "unwritten", "config.env", "FIRST", optional),
				fileKeyRef("D", "config", "config.env", "FIRST", optional),
			},
			want: []kubecontainer.EnvVar{{Name: "D", Value: "1"}},
		},
		{
			name:      "missing key",
			env:       []v1.EnvVar{fileKeyRef("A", "config", "config.env", "MISSING")},
			wantError: []string{`container "main"`, `variable "A"`, `key "MISSING"`, `env file "config.env"`, `volume "config"`, "does not define the key"},
		},
		{
			name:      "missing file",
			env:       []v1.EnvVar{fileKeyRef("A", "config", "missing.env", "FIRST")},
			wantError: []string{`env file "missing.env"`, "does not exist"},
		},
		{
			name:      "volume that nothing has written",
			env:       []v1.EnvVar{fileKeyRef("A", "unwritten", "config.env", "FIRST")},
			wantError: []string{`volume "unwritten"`, "does not exist"},
		},
		{
			name:      "a broken line after the key, though optional",
			env:       []v1.EnvVar{fileKeyRef("A", "config", "broken.env", "FIRST", optional)},
			wantError: []string{`env file "broken.env"`, "line 2: "},
		},
		{
			name:      "a directory, though optional",
			env:       []v1.EnvVar{fileKeyRef("A", "config", "dir", "FIRST", optional)},
			wantError: []string{"regular file"},
		},
		{
			name:      "a name that is not allowed",
			env:       []v1.EnvVar{fileKeyRef("A", "config", "relaxed.env", "9 lives")},
			wantError: []string{"line 1: ", "not a valid environment variable name"},
		},
		{
			name:         "a name that only relaxed validation allows",
			relaxedNames: true,
			env:          []v1.EnvVar{fileKeyRef("A", "config", "relaxed.env", "9 lives")},
			want:         []kubecontainer.EnvVar{{Name: "A", Value: secret}},
		},
		{
			name:      "a volume that is no emptyDir, though optional",
			env:       []v1.EnvVar{fileKeyRef("A", "host", "config.env", "FIRST", optional)},
			wantError: []string{`volume "host"`, "must be an emptyDir"},
		},
		{
			name:     "gate off: not set, and the rest of the environment is",
			disabled: true,
			env: []v1.EnvVar{
				fileKeyRef("A", "config", "config.env", "FIRST"),
				fileKeyRef("B", "config", "missing.env", "FIRST"),
				{Name: "C", Value: "literal"},
			},
			want: []kubecontainer.EnvVar{{Name: "C", Value: "literal"}},
		},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			featurestest.SetGate(t, features.EnvFiles, !tc.disabled)
			featurestest.SetGate(t, features.RelaxedEnvironmentVariableValidation, tc.relaxedNames)
			root := volumeOf(t, files)
			pod := podWithEmptyDirs("config", "unwritten")
			pod.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: ptr.To(int64(os.Getuid()))}
			pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{
				Name:         "host",
				VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: root}},
			})
			volumes := mountedAt(root)
			volumes["host"] = volumes["config"]

			kl := &Kubelet{volumeManager: &stubVolumeManager{}, podWorkers: &fakePodWorkers{}}
			got, err := kl.environment(pod, &v1.Container{Name: "main", Env: tc.env}, volumes)

			if len(tc.wantError) == 0 {
				require.NoError(t, err)
				sort.Sort(envs(got))
				assert.Equal(t, tc.want, got)
				return
			}
			require.Error(t, err)
			for _, part := range tc.wantError {
				assert.ErrorContains(t, err, part)
			}
			for _, hidden := range []string{secret, root} {
				assert.NotContains(t, err.Error(), hidden)
			}
		})
	}
}

// fileKeyRef is over envFrom, and one that is optional and missing leaves what
// envFrom set.
func TestEnvFilesOverEnvFrom(t *testing.T) {
	client := fake.NewSimpleClientset(&v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "map"},
		Data:       map[string]string{"A": "map", "B": "map"},
	})
	pod := podWithEmptyDirs("config")
	pod.Namespace = "default"
	container := &v1.Container{
		Name:    "main",
		EnvFrom: []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "map"}}}},
		Env:     []v1.EnvVar{fileKeyRef("A", "config", "config.env", "KEY"), fileKeyRef("B", "config", "config.env", "MISSING", optional)},
	}
	kl := kubeletWithEnvFiles(t)
	kl.kubeClient, kl.configMapManager = client, configmap.NewSimpleConfigMapManager(client)

	got, err := kl.environment(pod, container, mountedAt(volumeOf(t, map[string]string{"config.env": "KEY=file\n"})))

	require.NoError(t, err)
	sort.Sort(envs(got))
	assert.Equal(t, []kubecontainer.EnvVar{{Name: "A", Value: "file"}, {Name: "B", Value: "map"}}, got)
}

func TestEnvFileMetricsOfVolumesAndRuntimes(t *testing.T) {
	testEnvFileMetrics(t, kubeletWithEnvFiles(t), []envFileMetricsCase{
		{name: "a volume that is no emptyDir", wantReason: "invalid_volume", env: []v1.EnvVar{
			fileKeyRef("A", "host", "good.env", "KEY"),
		}},
		{name: "a volume that the pod does not have", wantReason: "invalid_volume", env: []v1.EnvVar{
			fileKeyRef("A", "missing", "good.env", "KEY"),
		}},
	})
	kl := kubeletWithEnvFiles(t)
	kl.containerRuntime = &imageUserRuntime{err: assert.AnError}
	testEnvFileMetrics(t, kl, []envFileMetricsCase{
		{name: "a runtime that does not answer", wantReason: "read_failed", env: []v1.EnvVar{
			fileKeyRef("A", "config", "good.env", "KEY"),
		}},
	})
}

// The runtime may not answer before the deadline of the start.
func TestEnvFilesEndWhileTheImageIsLookedUp(t *testing.T) {
	kl := kubeletWithEnvFiles(t)
	runtime := &imageUserRuntime{}
	kl.containerRuntime = runtime
	env := fileKeyRef("A", "config", "config.env", "KEY")
	root := volumeOf(t, map[string]string{"config.env": "KEY=value\n"})
	start := envFilesOf(kl, podWithEmptyDirs("config"), &v1.Container{Image: "app:v1", Env: []v1.EnvVar{env}}, root)
	ctx, cancel := context.WithCancel(context.Background())
	// As the errors of gRPC, which are none of the context package.
	runtime.err, runtime.before = assert.AnError, cancel
	metrics.EnvFileErrorsTotal.Reset()

	_, _, err := start.value(ctx, &env)

	require.ErrorIs(t, err, envfile.ErrInterrupted)
	assert.ErrorContains(t, err, `image "app:v1"`)
	interrupted, err := testutil.GetCounterMetricValue(metrics.EnvFileErrorsTotal.WithLabelValues("interrupted"))
	require.NoError(t, err)
	assert.Equal(t, 1.0, interrupted)
}
