package envfile

import (
	"testing"
)

// naiveAccess decides bit by bit for one reader of whom everything is known, in
// the words of acl(5). A nil ACL is none.
func naiveAccess(n node, acl []aclTestEntry, uid int64, groups map[int64]bool, want uint32) bool {
	has := func(bits uint32) bool { return bits&want == want }
	if uid == int64(n.uid) {
		return has(n.mode >> 6)
	}
	// The group bits of a file with an ACL are its mask. Linux does not look at the ACL
	// if they are all off.
	if acl == nil || n.mode>>3&7 == 0 {
		if groups[int64(n.gid)] {
			return has(n.mode >> 3)
		}
		return has(n.mode)
	}
	var mask uint16 = 7
	var other uint16
	for _, e := range acl {
		switch e.tag {
		case 0x10:
			mask = e.bits
		case 0x20:
			other = e.bits
		}
	}
	for _, e := range acl {
		if e.tag == 0x02 && int64(e.id) == uid {
			return has(uint32(e.bits & mask))
		}
	}
	inOne, granted := false, false
	for _, e := range acl {
		if e.tag == 0x04 && groups[int64(n.gid)] || e.tag == 0x08 && groups[int64(e.id)] {
			inOne = true
			granted = granted || has(uint32(e.bits))
		}
	}
	if inOne {
		return granted && has(uint32(mask))
	}
	return has(uint32(other))
}

// FuzzAccess draws from a handful of IDs, so that they meet. The ACL has a byte for
// the tag and bits of an entry and one for its ID.
func FuzzAccess(f *testing.F) {
	f.Add(uint16(0o640), uint8(1), uint8(2), uint8(1), uint8(2), []byte{}, []byte{}, false)
	f.Add(uint16(0o604), uint8(1), uint8(2), uint8(3), uint8(2), []byte{}, []byte{}, false)
	f.Add(uint16(0o640), uint8(1), uint8(2), uint8(3), uint8(4), []byte{2}, []byte{}, true)
	f.Add(uint16(0o600), uint8(6), uint8(7), uint8(0), uint8(0), []byte{}, []byte{}, true)
	f.Add(uint16(0o604), uint8(1), uint8(2), unknownID, unknownID, []byte{3}, []byte{}, false)
	f.Add(uint16(0o770), uint8(1), uint8(2), uint8(3), uint8(4), []byte{}, []byte{0x07, 3, 0x0c, 4}, false)
	f.Add(uint16(0o070), uint8(1), uint8(2), uint8(3), unknownID, []byte{5}, []byte{0x0c, 4, 0x0f, 5, 0x07, 2}, true)
	f.Fuzz(func(t *testing.T, mode uint16, owner, group, uid, gid uint8, groups, list []byte, userNamespace bool) {
		ids := []uint32{0, 1, 2, 1000, 2000, 65535, 65536, 1<<32 - 2}
		pickID := func(choice uint8) uint32 { return ids[int(choice)%len(ids)] }
		if len(list) > 40 || len(groups) > 20 {
			return
		}
		n := node{mode: uint32(mode) & 0o777, uid: pickID(owner), gid: pickID(group)}
		entries := fuzzACL(list, uint16(n.mode), pickID)
		c := Credentials{UserNamespace: userNamespace}
		if uid != unknownID {
			c.UID = id(int64(pickID(uid)))
		}
		if gid != unknownID {
			c.GID = id(int64(pickID(gid)))
		}
		for _, choice := range groups {
			c.Groups = append(c.Groups, int64(pickID(choice)))
		}
		for _, want := range []uint32{toRead, toSearch} {
			wanted := naiveDecision(n, entries, c, ids, want)
			r := newReader(&c)
			if r == nil {
				if wanted != always {
					t.Fatal("nothing is decided for who may not do everything")
				}
				continue
			}
			got, err := r.decide(n, want, func() ([]byte, error) {
				if entries == nil {
					return nil, nil
				}
				return aclOf(entries), nil
			})
			if err != nil || got != wanted {
				t.Errorf("%s wants %o of mode %o, owner %d, group %d, ACL %v: want %d, got %d, %v",
					describe(&c), want, n.mode, n.uid, n.gid, entries, wanted, got, err)
			}
		}
	})
}

const unknownID = uint8(255)

// naiveDecision asks for every reader that may be behind the credentials.
func naiveDecision(n node, acl []aclTestEntry, c Credentials, ids []uint32, want uint32) decision {
	if c.UID == nil {
		return decisionOf(n.mode&want == want)
	}
	if *c.UID == 0 && (!c.UserNamespace || n.uid <= 65535 && n.gid <= 65535) {
		return always
	}
	primaries := []int64{7777777}
	for _, gid := range ids {
		primaries = append(primaries, int64(gid))
	}
	if c.GID != nil {
		primaries = []int64{*c.GID}
	}
	yes, no := 0, 0
	for _, primary := range primaries {
		groups := map[int64]bool{primary: true}
		for _, gid := range c.Groups {
			groups[gid] = true
		}
		if naiveAccess(n, acl, *c.UID, groups, want) {
			yes++
		} else {
			no++
		}
	}
	switch {
	case no == 0:
		return always
	case yes == 0:
		return never
	}
	return dependsOnGID
}

// fuzzACL returns a complete ACL of the file, in the kernel's order, or none.
func fuzzACL(list []byte, mode uint16, pickID func(uint8) uint32) []aclTestEntry {
	if len(list) < 2 {
		return nil
	}
	var users, groups []aclTestEntry
	for ; len(list) >= 2; list = list[2:] {
		e := aclTestEntry{tag: 0x02, bits: uint16(list[0] & 7), id: pickID(list[1])}
		if list[0]&8 != 0 {
			e.tag = 0x08
			groups = append(groups, e)
		} else {
			users = append(users, e)
		}
	}

	all := append([]aclTestEntry{{0x01, mode >> 6 & 7, aclNoID}}, users...)
	all = append(all, aclTestEntry{0x04, mode >> 6 & 5, aclNoID})
	all = append(all, groups...)
	return append(all, aclTestEntry{0x10, mode >> 3 & 7, aclNoID}, aclTestEntry{0x20, mode & 7, aclNoID})
}
