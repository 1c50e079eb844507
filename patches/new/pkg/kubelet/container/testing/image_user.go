package testing

import "context"

// GetImageUID returns root, as for images without a user.
func (*FakeRuntime) GetImageUID(context.Context, string) (*int64, error) { return new(int64), nil }

// GetImageUID returns root, as for images without a user.
func (*MockRuntime) GetImageUID(context.Context, string) (*int64, error) { return new(int64), nil }
