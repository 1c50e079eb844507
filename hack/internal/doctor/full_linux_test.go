package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/layout"
)

func TestExplainDisk(t *testing.T) {
	root := t.TempDir()
	l := layout.Layout{Root: root}
	said := errors.New("unable to write file")
	if got := ExplainDisk(l, said); got != said {
		t.Errorf("with room on the disk the error became %v", got)
	}
	if got := ExplainDisk(l, nil); got != nil {
		t.Errorf("no error became %v", got)
	}

	if err := os.Mkdir(l.Output(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", l.Output(), "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small file system needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(l.Output(), 0); err != nil {
			t.Error(err)
		}
	})
	got := ExplainDisk(l, said)
	if !errors.Is(got, engine.ErrNoDisk) || !errors.Is(got, said) {
		t.Errorf("on a full disk: %v", got)
	}
	if want := filepath.Clean(l.Output()); !strings.Contains(got.Error(), want) {
		t.Errorf("the error does not name %s: %v", want, got)
	}
	if again := ExplainDisk(l, got); again != got {
		t.Errorf("explained twice: %v", again)
	}
}
