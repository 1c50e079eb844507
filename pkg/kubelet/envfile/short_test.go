package envfile

import (
	"strings"
	"testing"
)

func TestShort(t *testing.T) {
	testCases := []struct {
		name, path, want string
	}{
		{name: "a short path", path: "dir/config.env", want: "dir/config.env"},
		{name: "256 bytes", path: strings.Repeat("x", 256), want: strings.Repeat("x", 256)},
		{name: "257 bytes", path: strings.Repeat("x", 257), want: strings.Repeat("x", 253) + "..."},
		{name: "a character of two bytes at the cut", path: strings.Repeat("x", 252) + strings.Repeat("ä", 3), want: strings.Repeat("x", 252) + "..."},
		{name: "a character of two bytes before the cut", path: strings.Repeat("x", 251) + strings.Repeat("ä", 3), want: strings.Repeat("x", 251) + "ä..."},
		{name: "no UTF-8", path: strings.Repeat("\x80", 300), want: "..."},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			if got := Short(tc.path); got != tc.want {
				t.Errorf("want %q, got %q", tc.want, got)
			}
		})
	}
}
