package nodeimage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAFolderIsOneProcesssAtATime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rootfs")
	unlock, err := lockFolder(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := lockFolder(ctx, dir, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second lock while the first is held: %v, want it to wait", err)
	}
	unlock()
	again, err := lockFolder(t.Context(), dir, nil)
	if err != nil {
		t.Fatalf("after unlock: %v", err)
	}
	again()
}

func TestWhatAKilledRunLeftGoes(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "new-123", "rootfs.tar"), "half")
	writeFile(t, filepath.Join(dir, "abc.tar"), "whole")
	unlock, err := lockFolder(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := os.Stat(filepath.Join(dir, "new-123")); !os.IsNotExist(err) {
		t.Errorf("the half-made result is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "abc.tar")); err != nil {
		t.Errorf("the finished result is gone: %v", err)
	}
}
