package envfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// mayFollow is what the kernel does for fs.protected_symlinks: in a sticky
// directory that all can write to, the last link of a path is followed only if
// it belongs to the directory's owner or to who follows it. It matters although
// an emptyDir is not sticky: a workload can make such a directory in it, a
// copy of /tmp for example. And openat2 follows the rule by itself, with
// no exception for root, so that a walk without it would read more files.
func (r *reader) mayFollow(link, dir node) bool {
	const shared = unix.S_ISVTX | unix.S_IWOTH
	return dir.mode&shared != shared || link.uid == dir.uid || r.isUser(link.uid) || !protectedSymlinks()
}

// isUser reports whether files of that owner are the reader's own.
func (r *reader) isUser(uid uint32) bool {
	if r == nil {
		return os.Geteuid() == int(uid)
	}
	return r.UID != nil && *r.UID == int64(uid)
}

// protectedSymlinks is read when it matters only, which is hardly ever.
func protectedSymlinks() bool {
	setting, err := os.ReadFile("/proc/sys/fs/protected_symlinks")
	return err != nil || len(setting) == 0 || setting[0] != '0'
}
