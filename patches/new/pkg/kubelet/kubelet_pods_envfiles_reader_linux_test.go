//go:build linux

/*
Copyright 2026 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	containertest "k8s.io/kubernetes/pkg/kubelet/container/testing"
	"k8s.io/kubernetes/pkg/kubelet/envfile"
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
}

func (r *imageUserRuntime) GetImageUID(context.Context, string) (*int64, error) {
	r.calls++
	return r.uid, r.err
}

// setIDsPerPod sets userNamespaces.idsPerPod, and returns what the kubelet makes
// of it: 0 before v1.33, which has no such setting.
func setIDsPerPod(t *testing.T, kl *Kubelet, n int) int64 {
	t.Helper()
	setting := fmt.Sprintf(`{"UserNamespaces": {"IDsPerPod": %d}}`, n)
	require.NoError(t, json.Unmarshal([]byte(setting), &kl.kubeletConfiguration))
	if _, ok := interface{}(kl).(interface{ GetUserNamespacesIDsPerPod() uint32 }); !ok {
		return 0
	}
	return int64(n)
}

func TestEnvFileReader(t *testing.T) {
	id := func(id int64) *int64 { return &id }
	idsPerPod := setIDsPerPod(t, &Kubelet{}, 1<<17)
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
			want:      envfile.Credentials{UID: id(0), UserNamespace: true, IDsPerPod: idsPerPod},
			wantCalls: 1,
		},
		{
			name:      "the node's user namespace",
			pod:       v1.PodSpec{HostUsers: ptr.To(true)},
			container: &v1.SecurityContext{RunAsUser: id(0)},
			want:      envfile.Credentials{UID: id(0)},
		},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			runtime := &imageUserRuntime{uid: tc.imageUID}
			kl := &Kubelet{containerRuntime: runtime, volumeManager: &stubVolumeManager{groups: tc.volumeGroups}}
			setIDsPerPod(t, kl, 1<<17)

			got, err := kl.envFileReader(context.Background(), &v1.Pod{Spec: tc.pod}, &v1.Container{SecurityContext: tc.container})

			require.NoError(t, err)
			assert.Equal(t, &tc.want, got)
			assert.Equal(t, tc.wantCalls, runtime.calls, "calls of the container runtime")
		})
	}
}

func TestEnvFileReaderOfARuntimeThatFails(t *testing.T) {
	kl := &Kubelet{containerRuntime: &imageUserRuntime{err: assert.AnError}, volumeManager: &stubVolumeManager{}}

	_, err := kl.envFileReader(context.Background(), &v1.Pod{}, &v1.Container{Image: "app:v1"})

	assert.ErrorIs(t, err, assert.AnError)
	assert.ErrorContains(t, err, `image "app:v1"`)
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
			root := t.TempDir()
			require.NoError(t, os.Chmod(root, 0o777))
			require.NoError(t, os.WriteFile(filepath.Join(root, "config.env"), []byte("KEY=value\n"), tc.mode))
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
			kl := &Kubelet{containerRuntime: &imageUserRuntime{uid: tc.imageUID}, volumeManager: &stubVolumeManager{}}
			volumes := kubecontainer.VolumeMap{"config": {Mounter: &stubVolume{path: root}}}

			got, err := kl.environment(pod, &pod.Spec.Containers[0], volumes)

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
	root := t.TempDir()
	volumes := kubecontainer.VolumeMap{"config": {Mounter: &stubVolume{path: root}}}
	for _, name := range []string{"1.env", "2.env"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte("KEY=value\n"), 0o600))
	}
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
			kl := &Kubelet{containerRuntime: runtime, volumeManager: &stubVolumeManager{}}

			_, err := kl.environment(podWithEmptyDirs("config", "unwritten"), &v1.Container{Env: tc.env}, volumes)

			require.NoError(t, err)
			assert.Equal(t, tc.want, runtime.calls)
		})
	}
}
