package envfile

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

const (
	inside  = "KEY=inside\n"
	outside = "KEY=outside the volume\n"
)

// wholePath lets the kernel resolve the path in one call, which the walk must
// agree with.
func wholePath(_ context.Context, _ *reader, root int, path string) (node, error) {
	fd, err := openBeneath(root, path, 0)
	// A rename somewhere on the node kept the kernel from being sure that a ".."
	// stayed beneath root.
	for attempt := 0; attempt < 64 && errors.Is(err, unix.EAGAIN); attempt++ {
		fd, err = openBeneath(root, path, 0)
	}
	if err != nil {
		return node{}, err
	}
	return inspect(fd)
}

func walkWithoutOpenat2(ctx context.Context, r *reader, root int, path string) (node, error) {
	mount, err := mountOf(root)
	if err != nil {
		return node{}, err
	}
	w := walker{reader: r, mount: mount}
	return w.walk(ctx, root, path)
}
