package source

import (
	"archive/zip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
)

func TestDownloadErrorsSayWhatToDo(t *testing.T) {
	edit := func(file, old, new string) func(w *world) {
		return func(w *world) {
			path := filepath.Join("patches/v1.33", file)
			text := w.read(path)
			if !strings.Contains(text, old) {
				w.Fatalf("%s does not have %q", path, old)
			}
			w.write(path, strings.ReplaceAll(text, old, new))
		}
	}
	for name, c := range map[string]struct {
		do    func(w *world)
		is    error
		wants []string
	}{
		"a checksum in go.sum that differs": {
			edit("go.sum", "k8s.io/api v0.33.13 h1:", "k8s.io/api v0.33.13 h1:AAAA"),
			nil, []string{"checksum mismatch", "k8s.io/api@v0.33.13", "go clean -modcache"},
		},
		"an archive that was tampered with": {
			func(w *world) {
				// go downloads it and records its hash, then the archive changes.
				w.mustAssemble()
				w.removeMade()
				zip := filepath.Join(os.Getenv("GOMODCACHE"), "cache/download/k8s.io/api/@v/v0.33.13.zip")
				data, err := os.ReadFile(zip)
				w.ok(err)
				other, err := os.ReadFile(filepath.Join(proxy(), "k8s.io/api/@v/v0.33.14.zip"))
				w.ok(err)
				w.ok(os.WriteFile(zip, other, 0o644))
				w.Cleanup(func() { w.ok(os.WriteFile(zip, data, 0o644)) })
			},
			nil, []string{"checksum mismatch", "k8s.io/api@v0.33.13"},
		},
		"a checksum that go.sum lacks": {
			edit("go.sum", "k8s.io/api v0.33.13 h1:", "k8s.io/other v0.33.13 h1:"),
			nil, []string{"go.sum has no checksum of k8s.io/api@v0.33.13", "go mod download"},
		},
		"a release that does not exist": {
			func(w *world) {
				for _, f := range []string{"go.mod", "go.sum"} {
					edit(f, "33.13", "33.99")(w)
				}
			},
			nil, []string{"cannot download", "v0.33.99", "there may be no such release"},
		},
		"no network": {
			func(w *world) {
				w.Setenv("GOPROXY", "http://127.0.0.1:1")
				w.Setenv("GOMODCACHE", w.TempDir())
			},
			nil, []string{"cannot download", "connection refused", "GOPROXY"},
		},
		"a staging module of another release": {
			edit("go.mod", "k8s.io/api v0.33.13", "k8s.io/api v0.33.14"),
			nil, []string{"k8s.io/api@v0.33.14", "v0.33.13", "correct it"},
		},
		"a staging module that is not pinned": {
			edit("go.mod", "\tk8s.io/api v0.33.13\n", ""),
			nil, []string{"add k8s.io/api v0.33.13"},
		},
		"no go.sum": {
			func(w *world) { w.ok(os.Remove(filepath.Join(w.series.Dir, "go.sum"))) },
			os.ErrNotExist, []string{"pins of series v1.33"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.do(w)
			w.load()
			_, err := w.assemble(Options{})
			if err == nil || c.is != nil && !errors.Is(err, c.is) {
				t.Fatalf("error %v, want %v", err, c.is)
			}
			for _, want := range c.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q:\n%v", want, err)
				}
			}
			if _, err := os.Stat(w.dir()); !os.IsNotExist(err) {
				t.Errorf("there is a tree: %v", err)
			}
		})
	}
}

func TestPinsAreNeverWritten(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(w.series.Dir, "go.sum")
	before, err := os.ReadFile(path)
	w.ok(err)
	w.mustAssemble()
	after, err := os.ReadFile(path)
	w.ok(err)
	if string(after) != string(before) {
		t.Errorf("go.sum was changed to\n%s", after)
	}
}

func TestReleaseIsCommittedOnce(t *testing.T) {
	w := newWorld(t)
	w.mustAssemble()
	// No module can be downloaded any more, and none is needed.
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
	_, err := w.assemble(Options{Stock: true})
	w.ok(err)
	w.ok(os.RemoveAll(w.dir()))
	w.mustAssemble()
}

func TestCheckOfArchivesEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "module.zip")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	archive := zip.NewWriter(file)
	if _, err := archive.Create("k8s.io/api@v0.33.13/doc.go"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(archive.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	sum, err := dirhash.HashZip(path, dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}
	m := module.Version{Path: "k8s.io/api", Version: "v0.33.13"}
	zips, sums := []moduleZip{{Version: m, Zip: path}}, map[module.Version]string{m: sum}
	ctx, cancel := context.WithCancel(t.Context())
	if err := checkZips(ctx, zips, sums); err != nil {
		t.Errorf("before it ends: %v", err)
	}
	cancel()
	if err := checkZips(ctx, zips, sums); !errors.Is(err, context.Canceled) {
		t.Errorf("after it has ended: %v, want context.Canceled", err)
	}
}
