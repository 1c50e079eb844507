//go:build !linux

package envfile

import "context"

// Read fails: only Linux can keep a read inside a volume that a workload
// writes to.
func Read(ctx context.Context, root, path string, keys []string, opts Options) (*Values, error) {
	return nil, ErrReadFailed.atLine(0, "env files can be read on Linux nodes only")
}
