package envfile

import (
	"encoding/binary"
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// A POSIX ACL as the kernel hands it out: a version, then entries of a tag, the
// permission bits and an ID, in the order of the tags. It is linux/posix_acl_xattr.h.
const (
	aclName       = "system.posix_acl_access"
	aclVersion    = 2
	aclHeaderSize = 4
	aclEntrySize  = 8

	aclUser        = 0x02
	aclOwningGroup = 0x04
	aclGroup       = 0x08
	aclMask        = 0x10
	aclOther       = 0x20
)

// maxXattr is XATTR_SIZE_MAX.
const maxXattr = 64 << 10

// accessACL returns the file's ACL, or nothing if it has none. An O_PATH
// descriptor has no fgetxattr; its link in /proc leads to the same file.
func accessACL(fd int) ([]byte, error) {
	name := "/proc/self/fd/" + strconv.Itoa(fd)
	// A few dozen entries, which is more than one meets.
	list := make([]byte, 512)
	for {
		var n int
		err := retryEINTR(func() (err error) {
			n, err = unix.Getxattr(name, aclName, list)
			return err
		})
		switch {
		case err == nil:
			return list[:n], nil
		case errors.Is(err, unix.ENODATA), errors.Is(err, unix.EOPNOTSUPP):
			return nil, nil
		case errors.Is(err, unix.ERANGE) && len(list) < maxXattr:
			list = make([]byte, maxXattr)
		case errors.Is(err, unix.ENOENT):
			// Not the file, which is held open, but /proc is missing.
			return nil, ErrReadFailed
		default:
			return nil, err
		}
	}
}

// decideByACL is for a reader that does not own the file. A named user's entry
// decides alone. Else, if any of the reader's groups has an entry, one of those
// must allow it; only else the others' entry counts. The mask limits all but
// the last.
func (r *reader) decideByACL(list []byte, n node, want uint32) (decision, error) {
	if len(list) < aclHeaderSize || binary.LittleEndian.Uint32(list) != aclVersion || len(list)%aclEntrySize != aclHeaderSize {
		return never, unix.EIO
	}
	entries := list[aclHeaderSize:]
	mask, other, complete := uint32(7), uint32(0), false
	for e := entries; len(e) > 0; e = e[aclEntrySize:] {
		switch tag, bits, _ := aclEntry(e); tag {
		case aclMask:
			mask = bits
		case aclOther:
			other, complete = bits, true
		}
	}
	if !complete {
		return never, unix.EIO
	}
	masked := mask&want == want

	inAny := false
	// granted has the groups of which it is not known whether they are the reader's.
	var granted map[uint32]bool
	for e := entries; len(e) > 0; e = e[aclEntrySize:] {
		tag, bits, id := aclEntry(e)
		grants := bits&want == want
		switch tag {
		case aclUser:
			if int64(id) == *r.UID {
				return decisionOf(grants && masked), nil
			}
			continue
		case aclOwningGroup:
			id = n.gid
		case aclGroup:
		default:
			continue
		}
		switch r.membership(id) {
		case member:
			if grants {
				return decisionOf(masked), nil
			}
			inAny = true
		case maybeMember:
			if granted == nil {
				granted = map[uint32]bool{}
			}
			granted[id] = granted[id] || grants
		}
	}
	outcomes := []bool{!inAny && other&want == want}
	for _, grants := range granted {
		outcomes = append(outcomes, grants && masked)
	}
	return combine(outcomes...), nil
}

func aclEntry(e []byte) (tag uint16, bits, id uint32) {
	return binary.LittleEndian.Uint16(e), uint32(binary.LittleEndian.Uint16(e[2:])), binary.LittleEndian.Uint32(e[4:])
}
