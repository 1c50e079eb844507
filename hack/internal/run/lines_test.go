package run

import (
	"slices"
	"testing"
)

func TestEachLineKeepsWhatHasNoEndYet(t *testing.T) {
	var lines []string
	var rest []byte
	for _, piece := range []string{"", "on", "e\ntwo\n\nthr", "ee", "\nfour"} {
		rest = EachLine(append(rest, piece...), func(line string) { lines = append(lines, line) })
	}
	if want := []string{"one", "two", "", "three"}; !slices.Equal(lines, want) || string(rest) != "four" {
		t.Errorf("got %q and %q, want %q and %q", lines, rest, want, "four")
	}
}
