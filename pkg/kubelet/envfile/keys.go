package envfile

import (
	"hash/maphash"
	"slices"
)

// keyIndex finds the position of a key among those asked for. It is looked into
// for every line of a file, and a map of as many keys takes longer to make than
// the file takes to read.
type keyIndex struct {
	keys []string
	// table is open addressing with linear probing, or nil for a few keys, which
	// are compared one by one. An entry is a position in keys, counted from 1, in
	// the bits that the table's size takes, and the key's hash in the others; 0
	// is free. The hash is seeded: neither the names in a file nor the keys of a
	// pod can be chosen to collide.
	table []uint32
	seed  maphash.Seed
}

// fewKeys are found faster without a table.
const fewKeys = 4

// newKeyIndex keeps keys, unless there are some twice.
func newKeyIndex(keys []string) keyIndex {
	x := keyIndex{keys: keys}
	if len(keys) > fewKeys {
		size := 2 * fewKeys
		for size < 3*len(keys) {
			size *= 2
		}
		x.table = make([]uint32, size)
		x.seed = maphash.MakeSeed()
	}
	for i, key := range keys {
		if !x.add(key, i) {
			return newKeyIndex(distinct(keys))
		}
	}
	return x
}

func distinct(keys []string) []string {
	keys = slices.Clone(keys)
	slices.Sort(keys)
	return slices.Compact(keys)
}

// add reports whether the key is not there yet.
func (x *keyIndex) add(key string, position int) bool {
	if x.table == nil {
		return !slices.Contains(x.keys[:position], key)
	}
	hash := maphash.String(x.seed, key)
	at := x.first(hash)
	for ; x.table[at] != 0; at = x.after(at) {
		if x.mayBe(at, hash) && x.keys[x.position(at)] == key {
			return false
		}
	}
	x.table[at] = uint32(hash)&^x.mask() | uint32(position+1)
	return true
}

func (x *keyIndex) find(name []byte) (int, bool) {
	if x.table == nil {
		for i, key := range x.keys {
			if key == string(name) {
				return i, true
			}
		}
		return 0, false
	}
	hash := maphash.Bytes(x.seed, name)
	for at := x.first(hash); x.table[at] != 0; at = x.after(at) {
		if x.mayBe(at, hash) && x.keys[x.position(at)] == string(name) {
			return x.position(at), true
		}
	}
	return 0, false
}

func (x *keyIndex) mask() uint32 { return uint32(len(x.table) - 1) }

func (x *keyIndex) first(hash uint64) int { return int(hash>>32) & (len(x.table) - 1) }

func (x *keyIndex) after(at int) int { return (at + 1) & (len(x.table) - 1) }

func (x *keyIndex) mayBe(at int, hash uint64) bool { return (x.table[at]^uint32(hash))&^x.mask() == 0 }

func (x *keyIndex) position(at int) int { return int(x.table[at]&x.mask()) - 1 }
