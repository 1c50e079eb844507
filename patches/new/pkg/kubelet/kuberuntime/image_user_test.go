package kuberuntime

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"
)

func TestGetImageUID(t *testing.T) {
	testCases := []struct {
		name     string
		uid      *runtimeapi.Int64Value
		username string
		want     *int64
	}{
		{name: "an image with a numeric user", uid: &runtimeapi.Int64Value{Value: 1000}, want: ptr.To[int64](1000)},
		{name: "an image with a user name", username: "nonroot"},
		{name: "an image without a user runs as root", want: ptr.To[int64](0)},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			_, images, m, err := createTestRuntimeManager()
			require.NoError(t, err)
			images.SetFakeImages([]string{"image"})
			images.Images["image"].Uid = tc.uid
			images.Images["image"].Username = tc.username

			got, err := m.GetImageUID(context.Background(), "image")

			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestGetImageUIDOfARuntimeThatFails(t *testing.T) {
	_, images, m, err := createTestRuntimeManager()
	require.NoError(t, err)
	images.InjectError("ImageStatus", assert.AnError)

	_, err = m.GetImageUID(context.Background(), "image")

	assert.ErrorIs(t, err, assert.AnError)
}
