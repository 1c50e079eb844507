package envfile

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What the kernel cannot be asked about: unknown IDs and user namespaces, and
// what the error says. See TestAccessIsWhatTheKernelDecides for the rest.
func TestDecideAndRefuse(t *testing.T) {
	const (
		user  = "change its owner, group or mode, or set runAsUser, runAsGroup or fsGroup"
		noUID = "set runAsUser"
		noGID = "set runAsGroup"
	)
	named := aclOf([]aclTestEntry{{1, 6, aclNoID}, {2, 4, 7}, {4, 0, aclNoID}, {8, 4, 8}, {16, 4, aclNoID}, {32, 0, aclNoID}})
	testCases := []struct {
		name     string
		reader   Credentials
		mode     uint32
		uid, gid uint32
		acl      []byte
		refused  string // what the error ends in, or nothing
	}{
		{name: "the owner, by its own bits", reader: Credentials{UID: id(7), GID: id(7)}, uid: 7, gid: 9, mode: 0o400},
		{name: "the owner, refused though all others may", reader: Credentials{UID: id(7), GID: id(7)}, uid: 7, gid: 7, mode: 0o044, refused: user},
		{name: "the primary group", reader: Credentials{UID: id(7), GID: id(8)}, uid: 9, gid: 8, mode: 0o040},
		{name: "a supplementary group", reader: Credentials{UID: id(7), GID: id(7), Groups: []int64{9, 8, 1}}, uid: 9, gid: 8, mode: 0o040},
		{name: "a group, refused though others may", reader: Credentials{UID: id(7), GID: id(8)}, uid: 9, gid: 8, mode: 0o604, refused: user},
		{name: "others", reader: Credentials{UID: id(7), GID: id(7)}, uid: 9, gid: 8, mode: 0o004},
		{name: "others, refused", reader: Credentials{UID: id(7), GID: id(7)}, uid: 9, gid: 8, mode: 0o660, refused: user},

		{name: "unknown UID, and others may", reader: Credentials{GID: id(8)}, uid: 9, gid: 8, mode: 0o004},
		{name: "unknown UID, and others may not", reader: Credentials{GID: id(8), Groups: []int64{8}}, uid: 9, gid: 8, mode: 0o660, refused: noUID},
		{name: "unknown UID, and an ACL lets a group only", reader: Credentials{Groups: []int64{8}}, uid: 9, gid: 9, mode: 0o640, acl: named, refused: noUID},

		{name: "unknown GID, and group and others may", reader: Credentials{UID: id(7)}, uid: 9, gid: 8, mode: 0o044},
		{name: "unknown GID, and only the group may", reader: Credentials{UID: id(7)}, uid: 9, gid: 8, mode: 0o640, refused: noGID},
		{name: "unknown GID, and all but the group may", reader: Credentials{UID: id(7)}, uid: 9, gid: 8, mode: 0o604, refused: noGID},
		{name: "unknown GID, and neither may", reader: Credentials{UID: id(7)}, uid: 9, gid: 8, mode: 0o600, refused: user},
		{name: "unknown GID, and a supplementary group may", reader: Credentials{UID: id(7), Groups: []int64{8}}, uid: 9, gid: 8, mode: 0o640},
		{name: "unknown GID of the owner", reader: Credentials{UID: id(7)}, uid: 7, gid: 8, mode: 0o400},
		{name: "unknown GID of a user that an ACL names", reader: Credentials{UID: id(7)}, uid: 9, gid: 9, mode: 0o640, acl: named},
		{name: "unknown GID, and an ACL lets some group", reader: Credentials{UID: id(6)}, uid: 9, gid: 9, mode: 0o640, acl: named, refused: noGID},

		{name: "root", reader: Credentials{UID: id(0)}, uid: 9, gid: 9, mode: 0},
		{name: "root of a user namespace, over mapped IDs", reader: Credentials{UID: id(0), GID: id(0), UserNamespace: true}, uid: 65535, gid: 65535, mode: 0},
		{name: "root of a user namespace, over an owner not mapped", reader: Credentials{UID: id(0), GID: id(0), UserNamespace: true}, uid: 65536, gid: 9, mode: 0o600, refused: user},
		{name: "root of a user namespace, over a group not mapped", reader: Credentials{UID: id(0), GID: id(0), UserNamespace: true}, uid: 9, gid: 65536, mode: 0o600, refused: user},
		{name: "root of a longer user namespace", reader: Credentials{UID: id(0), GID: id(0), UserNamespace: true, IDsPerPod: 1 << 17}, uid: 1<<17 - 1, gid: 1<<17 - 1, mode: 0},
		{name: "root of a longer user namespace, over an owner not mapped", reader: Credentials{UID: id(0), GID: id(0), UserNamespace: true, IDsPerPod: 1 << 17}, uid: 1 << 17, gid: 9, mode: 0o600, refused: user},
		{name: "root of a user namespace, as one of the others", reader: Credentials{UID: id(0), GID: id(0), UserNamespace: true}, uid: 65536, gid: 65536, mode: 0o004},
		{name: "root of a user namespace, as the owner", reader: Credentials{UID: id(0), GID: id(0), UserNamespace: true}, uid: 0, gid: 65536, mode: 0o400},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			for want, file := range map[uint32]string{
				toRead:   "the container's user may not read the file: ",
				toSearch: "the container's user may not search a directory on the way to the file: ",
			} {
				r := newReader(&tc.reader)
				if r == nil {
					if tc.refused != "" {
						t.Error("nothing is ever refused")
					}
					continue
				}
				n := node{mode: tc.mode, uid: tc.uid, gid: tc.gid}
				acl := tc.acl
				if want == toSearch {
					// The same with the bits for searching in place of those for reading.
					n.mode = tc.mode >> 2 & 0o111
					acl = shiftBits(acl)
				}
				allowed, err := r.decide(n, want, func() ([]byte, error) { return acl, nil })
				if err != nil {
					t.Fatal(err)
				}
				err = r.refusal(allowed, want)
				if tc.refused == "" {
					if err != nil {
						t.Errorf("unexpected error: %v", err)
					}
					continue
				}
				wantError(t, err, ErrPermissionDenied, 0)
				if text := err.Error(); !strings.HasPrefix(text, file) || !strings.HasSuffix(text, tc.refused) {
					t.Errorf("want %q to start with %q and to end in %q", text, file, tc.refused)
				}
			}
		})
	}
}

func shiftBits(acl []byte) []byte {
	acl = append([]byte(nil), acl...)
	for at := 4; at < len(acl); at += 8 {
		acl[at+2] >>= 2
	}
	return acl
}

func TestACLThatCannotBeUnderstood(t *testing.T) {
	valid := aclOf([]aclTestEntry{{1, 6, aclNoID}, {4, 4, aclNoID}, {32, 4, aclNoID}})
	for name, acl := range map[string][]byte{
		"another version":   append([]byte{3}, valid[1:]...),
		"cut short":         valid[:len(valid)-1],
		"only a version":    valid[:4],
		"not even that":     valid[:3],
		"without others":    aclOf([]aclTestEntry{{1, 6, aclNoID}, {4, 4, aclNoID}}),
		"could not be read": nil,
	} {
		t.Run(name, func(t *testing.T) {
			r := newReader(stranger)
			_, err := r.decide(node{mode: 0o777}, toRead, func() ([]byte, error) {
				if acl == nil {
					return nil, unix.EIO
				}
				return acl, nil
			})
			if err != unix.EIO { // reasonOf makes ErrReadFailed of it
				t.Errorf("error %v, want EIO", err)
			}
		})
	}
}
