package envfile

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
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

const (
	// aclSteps is what it takes to ask for an ACL, in steps of a walk.
	aclSteps = 2
	// aclBytesPerStep is how much of an ACL takes another one.
	aclBytesPerStep = 128
)

// accessACL returns the file's ACL, or nothing if it has none. It is valid until
// the next call. An O_PATH descriptor has no fgetxattr; its link in /proc leads to
// the same file.
func (r *reader) accessACL(fd int) ([]byte, error) {
	name := "/proc/self/fd/" + strconv.Itoa(fd)
	if r.acl == nil {
		// A few dozen entries, which is more than one meets.
		r.acl = make([]byte, 512)
	}
	r.steps += aclSteps
	for {
		var n int
		err := retryEINTR(func() (err error) {
			n, err = unix.Getxattr(name, aclName, r.acl)
			return err
		})
		switch {
		case err == nil:
			r.steps += n / aclBytesPerStep
			return r.acl[:n], nil
		case errors.Is(err, unix.ENODATA), errors.Is(err, unix.EOPNOTSUPP):
			return nil, nil
		case errors.Is(err, unix.ERANGE) && len(r.acl) < maxXattr:
			r.acl = make([]byte, maxXattr)
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
	r.doubtful = r.doubtful[:0]
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
			r.doubtful = append(r.doubtful, groupEntry{id, grants})
		}
	}
	outcome := decisionOf(!inAny && other&want == want)
	// Of the entries of one group, one that grants is enough: it sorts first.
	slices.SortFunc(r.doubtful, groupEntry.compare)
	for i, entry := range r.doubtful {
		if i == 0 || entry.id != r.doubtful[i-1].id {
			if outcome != decisionOf(entry.grants && masked) {
				return dependsOnGID, nil
			}
		}
	}
	return outcome, nil
}

// groupEntry is the entry of a group that the reader may be in.
type groupEntry struct {
	id     uint32
	grants bool
}

func (e groupEntry) compare(other groupEntry) int {
	if e.id == other.id && e.grants != other.grants {
		if e.grants {
			return -1
		}
		return 1
	}
	return cmp.Compare(e.id, other.id)
}

func aclEntry(e []byte) (tag uint16, bits, id uint32) {
	return binary.LittleEndian.Uint16(e), uint32(binary.LittleEndian.Uint16(e[2:])), binary.LittleEndian.Uint32(e[4:])
}
