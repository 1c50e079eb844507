package envfile

import (
	"slices"

	"golang.org/x/sys/unix"
)

// What a reader may want of a file: the kernel's MAY_READ and MAY_EXEC.
const (
	toRead   = 4
	toSearch = 1
)

// reader decides as the kernel would for a process with some credentials. A nil
// reader may do everything that the kubelet may.
type reader struct {
	Credentials

	// acl has the ACL that was read last, and doubtful the entries in it of groups
	// that the reader may be in.
	acl      []byte
	doubtful []groupEntry
	// steps is what the decisions so far took, in steps of a walk.
	steps int
}

// newReader returns nil for credentials that nothing is refused to: then the
// kernel resolves the path with the kubelet's own, UID 0 too.
func newReader(credentials *Credentials) *reader {
	if credentials == nil || isRoot(credentials) && !credentials.UserNamespace {
		return nil
	}
	r := &reader{Credentials: *credentials}
	if r.IDsPerPod == 0 {
		r.IDsPerPod = defaultIDsPerPod
	}
	r.Groups = slices.Clone(r.Groups)
	slices.Sort(r.Groups)
	return r
}

func isRoot(c *Credentials) bool { return c.UID != nil && *c.UID == 0 }

// node is a file that an O_PATH descriptor stands for, and what a decision about
// it is made from. The descriptor keeps them together: whatever is renamed, the
// decision is about the file that is then entered or read.
type node struct {
	fd       int
	mode     uint32
	uid, gid uint32
}

func inspect(fd int) (node, error) {
	var st unix.Stat_t
	err := retryEINTR(func() error { return unix.Fstat(fd, &st) })
	return node{fd: fd, mode: st.Mode, uid: st.Uid, gid: st.Gid}, err
}

func (n node) is(fileType uint32) bool { return n.mode&unix.S_IFMT == fileType }

// check returns an error unless the reader may do what it wants with the file.
//
// As in the kernel's open(2), what counts is the moment at which the file is
// reached: a mode that changes later takes nothing from who has it open.
func (r *reader) check(n node, want uint32) error {
	if r == nil {
		return nil
	}
	allowed, err := r.decide(n, want, func() ([]byte, error) { return r.accessACL(n.fd) })
	if err != nil {
		return err
	}
	return r.refusal(allowed, want)
}

// decision is what is known about an access while the primary group may not be.
type decision int

const (
	never decision = iota
	// dependsOnGID: some primary groups may, others may not.
	dependsOnGID
	always
)

func decisionOf(allowed bool) decision {
	if allowed {
		return always
	}
	return never
}

// decide finds the one class that the reader belongs to, as the kernel's
// generic_permission does: the owner; else, if the file has an ACL, what that
// says; else the group; else the others. A later class never helps who
// belongs to an earlier one.
//
// A container's UID 0 passes whatever capabilities it has dropped (KEP-3721, row
// 7, speaks of the UID). In a user namespace its power ends at files with an
// owner or group that is not mapped there. The volume is an idmapped mount
// then: the IDs on the disk are those that the container sees.
func (r *reader) decide(n node, want uint32, acl func() ([]byte, error)) (decision, error) {
	other, group, owner := n.mode, n.mode>>3, n.mode>>6
	switch {
	case r.UID == nil:
		return decisionOf(other&want == want), nil
	case *r.UID == 0 && (!r.UserNamespace || r.maps(n.uid) && r.maps(n.gid)):
		return always, nil
	case *r.UID == int64(n.uid):
		return decisionOf(owner&want == want), nil
	case group&7 != 0:
		// Of a file with an ACL these bits are its mask. Where they are all
		// off, the kernel does not look at the ACL.
		list, err := acl()
		if err != nil {
			return never, err
		}
		if len(list) > 0 {
			return r.decideByACL(list, n, want)
		}
	}
	switch r.membership(n.gid) {
	case member:
		return decisionOf(group&want == want), nil
	case notMember:
		return decisionOf(other&want == want), nil
	}
	if group&want != other&want {
		return dependsOnGID, nil
	}
	return decisionOf(other&want == want), nil
}

// maps reports whether an ID of a volume exists in the reader's user namespace.
func (r *reader) maps(id uint32) bool { return int64(id) < r.IDsPerPod }

type membership int

const (
	notMember membership = iota
	maybeMember
	member
)

func (r *reader) membership(gid uint32) membership {
	if r.GID != nil && *r.GID == int64(gid) {
		return member
	}
	if _, found := slices.BinarySearch(r.Groups, int64(gid)); found {
		return member
	}
	if r.GID == nil {
		return maybeMember
	}
	return notMember
}

// refusal says what to do, unless access is allowed.
func (r *reader) refusal(allowed decision, want uint32) error {
	if allowed == always {
		return nil
	}
	rule := ruleMayNotRead
	if want == toSearch {
		rule = ruleMayNotSearch
	}
	switch {
	case r.UID == nil:
		rule += hintUnknownUID
	case allowed == dependsOnGID:
		rule += hintUnknownGID
	default:
		rule += hintRefused
	}
	return ErrPermissionDenied.atLine(0, rule)
}

const (
	ruleMayNotRead   = "the container's user may not read the file: "
	ruleMayNotSearch = "the container's user may not search a directory on the way to the file: "
	ruleMayNotFollow = "the container's user may not follow a symbolic link that another user made in a sticky directory that all can write to: use the file's own path"

	hintRefused    = "change its owner, group or mode, or set runAsUser, runAsGroup or fsGroup"
	hintUnknownUID = "the image names its user, so others must be allowed to; change the mode, or set runAsUser"
	hintUnknownGID = "it depends on the primary group, which is not known; set runAsGroup"
)
