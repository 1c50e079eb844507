package envfile

import (
	"errors"
	"strings"
	"testing"
)

// Text is looked at many bytes at a time: nothing may hide in any place.
func TestCheckTextFindsABadByteAnywhere(t *testing.T) {
	const length = 100
	for _, bad := range []string{"\x00", "\x80", "\xff", "\xed\xa0\x80", "ä\x00", "ä\xff"} {
		for at := 0; at+len(bad) <= length; at++ {
			text := strings.Repeat("a", at) + bad + strings.Repeat("\x7f", length-len(bad)-at)
			if err := checkText([]byte(text)); !errors.Is(err, ErrInvalidSyntax) {
				t.Errorf("%q at %d: want an error, got %v", bad, at, err)
			}
		}
	}
	for _, good := range []string{"ä", "\x01", "\x7f", "你", "\U0001F600"} {
		for at := 0; at < length; at++ {
			text := strings.Repeat("\x01", at) + good + strings.Repeat("\x7f", length-at)
			if err := checkText([]byte(text)); err != nil {
				t.Errorf("%q at %d: %v", good, at, err)
			}
		}
	}
}
