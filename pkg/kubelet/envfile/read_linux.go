package envfile

import (
	"context"
	"sync"

	"golang.org/x/sys/unix"
)

// Read returns the values that the env file at path, relative to the directory
// root of a volume, defines for keys. See Parse for the syntax; the error is an
// *Error.
//
// It opens the file once, never blocks on another process, and reads one state
// of the file. It waits up to some tens of milliseconds for a writer to close
// the file, and not longer than ctx.
func Read(ctx context.Context, root, path string, keys []string, opts Options) (*Values, error) {
	return read(ctx, root, path, keys, opts, walk)
}

func read(ctx context.Context, root, path string, keys []string, opts Options, resolve resolver) (*Values, error) {
	fd, err := open(ctx, root, path, newReader(opts.Reader), resolve)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)

	b := buffers.Get().(*buffer)
	defer b.release()
	data, err := b.readStable(ctx, descriptor(fd))
	if err != nil {
		return nil, err
	}
	return Parse(data, keys, opts)
}

// buffer holds a reading of a file, and a piece of a second one that is compared
// with it. One byte over the limit is read, so that a file over the limit is
// known whatever its size is said to be.
type buffer struct {
	data  [MaxFileBytes + 1]byte
	used  int
	again [8 << 10]byte
}

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// release wipes the buffer: an env file may hold secrets.
func (b *buffer) release() {
	clear(b.data[:b.used])
	clear(b.again[:])
	b.used = 0
	buffers.Put(b)
}

func (d descriptor) state() (state, error) {
	var st unix.Stat_t
	if err := retryEINTR(func() error { return unix.Fstat(int(d), &st) }); err != nil {
		return state{}, err
	}
	return state{size: st.Size, mtime: st.Mtim, ctime: st.Ctim}, nil
}

func (d descriptor) lease() error {
	var fs unix.Statfs_t
	if err := retryEINTR(func() error { return unix.Fstatfs(int(d), &fs) }); err != nil {
		return err
	}
	if !leaseProves(uint32(fs.Type)) {
		return unix.EOPNOTSUPP
	}
	_, err := unix.FcntlInt(uintptr(d), unix.F_SETLEASE, unix.F_RDLCK)
	return err
}

// leaseProves reports whether a lease on that file system shows that a file has no
// writer, and its refusal that it has one: TestLease shows it on each. Overlayfs grants a
// lease beside a mapping that can write once the mapping's descriptor is closed; NFS
// and SMB refuse leases for reasons of their own, with the same EAGAIN. The magic number
// of a file system has 32 bits; Statfs_t has it as int32, uint32 or int64.
func leaseProves(fileSystem uint32) bool {
	switch fileSystem {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		return true
	}
	return false
}

// endLease fails where the lease is gone. If someone had to wait, the kernel has
// sent SIGIO, which the Go runtime ignores.
func (d descriptor) endLease() bool {
	_, err := unix.FcntlInt(uintptr(d), unix.F_SETLEASE, unix.F_UNLCK)
	return err == nil
}
