package envfile

import (
	"fmt"
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
			x := newKeyIndex(append(keysOf(n/2), keys...))
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
