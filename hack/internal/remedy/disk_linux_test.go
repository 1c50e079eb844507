package remedy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestExplainDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "_output")
	said := errors.New("unable to write file")
	if got := ExplainDisk(dir, said); got != said {
		t.Errorf("with room on the disk the error became %v", got)
	}
	if got := ExplainDisk(dir, nil); got != nil {
		t.Errorf("no error became %v", got)
	}

	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small file system needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	got := ExplainDisk(dir, said)
	if !errors.Is(got, ErrNoDisk) || !errors.Is(got, said) {
		t.Errorf("on a full disk: %v", got)
	}
	if !strings.Contains(got.Error(), dir) {
		t.Errorf("the error does not name %s: %v", dir, got)
	}
	if again := ExplainDisk(dir, got); again != got {
		t.Errorf("explained twice: %v", again)
	}
}
