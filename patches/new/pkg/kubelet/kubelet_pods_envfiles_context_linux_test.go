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
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	containertest "k8s.io/kubernetes/pkg/kubelet/container/testing"
	"k8s.io/kubernetes/pkg/kubelet/envfile"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	"k8s.io/utils/ptr"
)

// The tests of envfile show what a context ends. These show that all readings of
// a start have the same one, and that it is the pod's.
func TestEnvFilesOfOneStartShareADeadline(t *testing.T) {
	featurestest.SetGate(t, features.EnvFiles, true)
	root := t.TempDir()
	for _, name := range []string{"1.env", "2.env", "3.env"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte("KEY=value\n"), 0o600))
	}
	container := &v1.Container{
		Env: []v1.EnvVar{
			fileKeyRef("A", "config", "1.env", "KEY"),
			fileKeyRef("B", "config", "2.env", "KEY"),
			fileKeyRef("C", "config", "3.env", "KEY", optional),
		},
		SecurityContext: &v1.SecurityContext{RunAsUser: ptr.To(int64(os.Getuid()))},
	}
	volumes := kubecontainer.VolumeMap{"config": {Mounter: &stubVolume{path: root}}}
	kl := &Kubelet{volumeManager: &stubVolumeManager{}}
	ctx := context.Background()

	start := kl.newContainerEnvFiles(podWithEmptyDirs("config"), container, volumes)
	_, _, err := start.value(ctx, &container.Env[0])
	require.NoError(t, err)
	deadline := start.deadline
	assert.WithinDuration(t, time.Now().Add(envFilesTimeout), deadline, envFilesTimeout)
	_, _, err = start.value(ctx, &container.Env[1])
	require.NoError(t, err)
	assert.Equal(t, deadline, start.deadline, "of the second file")
	start.deadline = time.Now().Add(-time.Second)
	_, _, err = start.value(ctx, &container.Env[2])
	require.ErrorIs(t, err, envfile.ErrInterrupted, "though optional")
	assert.ErrorContains(t, err, "took too long")

	worker, cancel := context.WithCancel(ctx)
	cancel()
	start = kl.newContainerEnvFiles(podWithEmptyDirs("config"), container, volumes)
	_, _, err = start.value(withPodWorkerContext(ctx, worker), &container.Env[0])
	require.ErrorIs(t, err, envfile.ErrInterrupted)
	assert.ErrorContains(t, err, "pod is being deleted")
}

// syncRuntime keeps the context of the last SyncPod.
type syncRuntime struct {
	*containertest.FakeRuntime
	ctx context.Context
}

func (r *syncRuntime) SyncPod(ctx context.Context, pod *v1.Pod, status *kubecontainer.PodStatus, secrets []v1.Secret, backOff *flowcontrol.Backoff) kubecontainer.PodSyncResult {
	r.ctx = ctx
	return r.FakeRuntime.SyncPod(ctx, pod, status, secrets, backOff)
}

func TestSyncPodPassesTheContextOfThePodWorker(t *testing.T) {
	testKubelet := newTestKubelet(t, false /* controllerAttachDetachEnabled */)
	defer testKubelet.Cleanup()
	kl := testKubelet.kubelet
	runtime := &syncRuntime{FakeRuntime: testKubelet.fakeRuntime}
	kl.containerRuntime = runtime
	pod := podWithUIDNameNsSpec("12345678", "pod", "new", v1.PodSpec{HostNetwork: true, Containers: []v1.Container{{Name: "main"}}})
	pod.Annotations[kubetypes.ConfigSourceAnnotationKey] = kubetypes.FileSource
	kl.podManager.SetPods([]*v1.Pod{pod})

	worker, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := kl.SyncPod(worker, kubetypes.SyncPodUpdate, pod, nil, &kubecontainer.PodStatus{})
	require.NoError(t, err)
	require.NotNil(t, runtime.ctx)
	cancel()
	assert.NoError(t, runtime.ctx.Err(), "the runtime's own context goes on")
	assert.Error(t, podWorkerContext(runtime.ctx).Err())
}
