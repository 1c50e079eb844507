//go:build linux

package kubelet

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/utils/ptr"
)

func TestEnvFileReaderHasTheConfiguredIDsOfAUserNamespace(t *testing.T) {
	kl := &Kubelet{volumeManager: &stubVolumeManager{}}
	kl.kubeletConfiguration.UserNamespaces = &kubeletconfig.UserNamespaces{IDsPerPod: ptr.To[int64](1 << 17)}
	for hostUsers, want := range map[bool]int64{false: 1 << 17, true: 0} {
		pod := &v1.Pod{Spec: v1.PodSpec{HostUsers: &hostUsers, SecurityContext: &v1.PodSecurityContext{RunAsUser: ptr.To[int64](0)}}}
		reader, err := kl.envFileReader(context.Background(), pod, &v1.Container{})
		require.NoError(t, err)
		assert.Equal(t, want, reader.IDsPerPod, "hostUsers: %v", hostUsers)
	}
}
