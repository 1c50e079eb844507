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

func TestLocksThatExcludeEachOther(t *testing.T) {
	for _, tc := range []struct {
		name          string
		first, second func(string) (func(), error)
		excluded      bool
	}{
		{"a lock excludes a lock", TryLock, TryLock, true},
		{"a lock excludes a share", TryLock, TryShare, true},
		{"a share excludes a lock", TryShare, TryLock, true},
		{"a share allows a share", TryShare, TryShare, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "new", "lock")
			unlock, err := tc.first(path)
			if err != nil {
				t.Fatal(err)
			}
			second, err := tc.second(path)
			if tc.excluded != errors.Is(err, ErrHeld) || !tc.excluded && err != nil {
				t.Fatalf("second: %v", err)
			}
			if err == nil {
				second()
			}
			unlock()
			again, err := tc.second(path)
			if err != nil {
				t.Fatalf("after unlock: %v", err)
			}
			again()
		})
	}
}

func TestLockWaitsAndSaysForWhom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := TryShare(path)
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
