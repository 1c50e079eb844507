package lockfile

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podenv.dev/hack/internal/progress"
)

func TestALockExcludesALock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "lock")
	unlock, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(path); !errors.Is(err, ErrHeld) {
		t.Fatalf("second: %v", err)
	}
	unlock()
	again, err := TryLock(path)
	if err != nil {
		t.Fatalf("after unlock: %v", err)
	}
	again()
}

func TestLockWaitsAndSaysForWhom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*retry)
	defer cancel()
	_, err = Lock(ctx, path, "that builds", nil)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another podenv that builds") {
		t.Errorf("error %v, want it to wait until the deadline", err)
	}

	step := progress.New(io.Discard, false, 80, t.TempDir()).Step("x")
	time.AfterFunc(retry/2, first)
	unlock, err := Lock(t.Context(), path, "that builds", step)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	said, err := os.ReadFile(step.LogPath())
	if err != nil || !strings.Contains(string(said), "# waiting for another podenv that builds\n") {
		t.Errorf("the step said %q, %v", said, err)
	}
}
