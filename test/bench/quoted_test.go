package bench

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	upstream "k8s.io/kubernetes/pkg/kubelet/util/env"

	"podenv.dev/pkg/kubelet/envfile"
)

// pieces are what random files are made of: all that one of the two readers looks at.
var pieces = []string{
	"A", "B", "A='", "B='", "A='1'\n", "B='2'\n", "=", "'", "''", " ", "\t", "\n", "\r\n", "\r", "#", "v", "\\", "\"", "\v", "ä", "X= ", "export ",
}

// absent is a key of no file: to look for it, upstream reads the whole file.
const absent = "ABSENT"

// Whatever files upstream's kubelet reads to their end, as it does in v1.35 to v1.37, are read
// here with the same values, and no others. What differs is meant to: the last definition
// wins, and names are those that the API server allows.
func TestTheQuotedFormIsThatOfKubernetes(t *testing.T) {
	file := filepath.Join(t.TempDir(), fileName)
	random := rand.New(rand.NewPCG(1, 2))
	accepted, refused := 0, 0
	for range 5_000 {
		var text strings.Builder
		for range 1 + random.IntN(12) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if diff := differ(text.String(), file); diff != "" {
			t.Fatalf("%q: %s", text.String(), diff)
		}
		if _, err := upstream.ParseEnv(file, absent); err == nil {
			accepted++
		} else {
			refused++
		}
	}
	if accepted < 300 || refused < 300 {
		t.Errorf("%d files were accepted and %d refused, want at least 300 of each: choose other pieces", accepted, refused)
	}
}

// differ says how the two readers differ on text, which file contains.
func differ(text, file string) string {
	keys := []string{"A", "B"}
	ours, err := envfile.Parse([]byte(text), keys, envfile.Options{Syntax: envfile.SingleQuoted, RelaxedNames: true})
	_, upstreamErr := upstream.ParseEnv(file, absent)
	if envfileErr, ok := err.(*envfile.Error); ok && envfileErr.Reason == envfile.ReasonInvalidName {
		return "" // upstream looks at no name but the one that it looks for
	}
	if (err == nil) != (upstreamErr == nil) {
		return fmt.Sprintf("upstream's error is %v, ours is %v", upstreamErr, err)
	}
	if err != nil {
		return ""
	}
	for _, key := range keys {
		theirs, err := upstream.ParseEnv(file, key)
		if err != nil {
			return fmt.Sprintf("upstream does not find %s in a file that it reads: %v", key, err)
		}
		value, _ := ours.Lookup(key)
		if theirs != value && !definedTwice(text, key) {
			return fmt.Sprintf("%s is %q upstream, %q here", key, theirs, value)
		}
	}
	return ""
}

func definedTwice(text, key string) bool { return strings.Count(text, key+"=") > 1 }
