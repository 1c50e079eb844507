package node

import (
	"os"
	"path/filepath"
	"testing"

	"podenv.dev/hack/internal/run"
)

// The copy that a swap kept may be a hard link to the file, if the swap was interrupted early
// or does not change the file.
func TestMovingAFileOverItselfIsNoError(t *testing.T) {
	for name, prepare := range map[string]func(from, to string) error{
		"another file":             func(from, to string) error { return os.WriteFile(from, []byte("new"), 0o600) },
		"the file by another name": func(from, to string) error { return os.Link(to, from) },
	} {
		t.Run(name, func(t *testing.T) {
			from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
			if err := os.WriteFile(to, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := prepare(from, to); err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			another := filepath.Join(t.TempDir(), "another")
			if err := os.WriteFile(another, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := run.Command(t.Context(), "sh", "-ec", moveScript, "sh", from, to, another, another+".moved").Run(); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(to); err != nil || string(got) != string(want) {
				t.Errorf("the file has %q, %v, want %q", got, err, want)
			}
			if _, err := os.Stat(another + ".moved"); err != nil {
				t.Errorf("the next file: %v", err)
			}
		})
	}
}
