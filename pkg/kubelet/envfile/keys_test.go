package envfile

import (
	"fmt"
	"hash/maphash"
	"reflect"
	"testing"
)

func keysOf(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("KEY", i)
	}
	return keys
}

func TestKeyIndex(t *testing.T) {
	for _, n := range []int{0, 1, fewKeys, fewKeys + 1, 100, 3000} {
		t.Run(fmt.Sprint(n, " keys"), func(t *testing.T) {
			keys := keysOf(n)
			given := append(keysOf(n/2), keys...)
			before := append([]string{}, given...)
			x := newKeyIndex(given)
			if !reflect.DeepEqual(given, before) {
				t.Error("the caller's keys have changed")
			}
			if len(x.keys) != n {
				t.Errorf("want each key once, got %d", len(x.keys))
			}
			for _, key := range keys {
				if i, ok := x.find([]byte(key)); !ok || x.keys[i] != key {
					t.Errorf("%s is not found", key)
				}
			}
			for _, other := range []string{"", "KEY", fmt.Sprint("KEY", n), "key0"} {
				if _, ok := x.find([]byte(other)); ok {
					t.Errorf("%q is found", other)
				}
			}
		})
	}
}

// A name whose hash is that of a key is still another name.
func TestKeyIndexComparesKeys(t *testing.T) {
	x := newKeyIndex(keysOf(100))
	hash := maphash.String(x.seed, "OTHER")
	x.table = make([]uint32, len(x.table))
	x.table[x.first(hash)] = uint32(hash)&^x.mask() | 1
	if _, ok := x.find([]byte("OTHER")); ok {
		t.Error("it is found")
	}
	if !x.add("OTHER", 1) {
		t.Error("it is there already")
	}
}
