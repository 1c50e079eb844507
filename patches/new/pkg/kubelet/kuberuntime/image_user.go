package kuberuntime

import "context"

// GetImageUID returns the UID that a container of the image is created with if
// it sets no runAsUser, or nil if the image has a user name in its place.
func (m *kubeGenericRuntimeManager) GetImageUID(ctx context.Context, image string) (*int64, error) {
	uid, _, err := m.getImageUser(ctx, image)
	return uid, err
}
