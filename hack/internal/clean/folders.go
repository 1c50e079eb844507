package clean

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/source"
)

// trees are the assembled sources. One goes if its series is gone and nobody edited it.
func trees(ctx context.Context, l layout.Layout, names []string) ([]Item, error) {
	return folders(l.Tree("*"), names, func(name string) error {
		minor, stock := strings.CutSuffix(name, "-stock")
		return source.CheckUnedited(ctx, l, series.Series{Name: minor}, stock)
	})
}

// builds are the binaries and images of trees. One goes with its series.
func builds(l layout.Layout, names []string) ([]Item, error) {
	return folders(l.Build("*"), names, func(string) error { return nil })
}

// folders are those that match pattern and are called for a series, "v1.33", or its stock
// release, "v1.33-stock". One whose series is gone is removed, unless check has a reason
// to keep it.
func folders(pattern string, names []string, check func(name string) error) ([]Item, error) {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	kind := strings.TrimSuffix(filepath.Base(filepath.Dir(pattern)), "s")
	var items []Item
	for _, path := range paths {
		item, err := folder(kind, path)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(filepath.Base(path), "-stock")
		item.Action, item.Why = Keep, "of series "+name
		if !slices.Contains(names, name) {
			item.Action, item.Why = Remove, "patches/ has no series "+name
			if err := check(filepath.Base(path)); err != nil {
				item.Action = Keep
				item.Why, _, _ = strings.Cut(err.Error(), "\n") // what to do about it follows
			}
		}
		items = append(items, item)
	}
	return items, nil
}

// unused are cached results, reports and folders that tests work in. They go if nothing has
// read or written them since the time given: their names are hashes of what they were made
// from, so that a file for which there is no use any more is just never opened again.
func unused(l layout.Layout, since time.Time) ([]Item, error) {
	var items []Item
	for _, place := range []struct{ kind, pattern string }{
		{"cache", l.Cache("*/*")},
		{"scratch", filepath.Join(l.Output(), "verify", "*")},
		{"scratch", filepath.Join(l.Output(), "bench")},
		{"scratch", filepath.Join(l.Output(), "fresh-*")},
		{"scratch", filepath.Join(l.Logs(), "*")},
	} {
		paths, err := filepath.Glob(place.pattern)
		if err != nil {
			return nil, err
		}
		kept := map[string]*Item{} // one item for all that stays in a folder
		for _, path := range paths {
			if strings.HasSuffix(path, "lock") {
				continue // others may wait for it
			}
			item, err := folder(place.kind, path)
			if err != nil {
				return nil, err
			}
			if item.used.Before(since) {
				item.Action, item.Why = Remove, "not used since "+item.used.Format(time.DateOnly)
				items = append(items, item)
				continue
			}
			in := filepath.Dir(path)
			if kept[in] == nil {
				kept[in] = &Item{Action: Keep, Kind: place.kind, Name: in, Why: "what it still has is in use"}
			}
			kept[in].Bytes += item.Bytes
		}
		for _, in := range slices.Sorted(maps.Keys(kept)) {
			items = append(items, *kept[in])
		}
	}
	return items, nil
}

// folder is the item of a file or folder.
func folder(kind, path string) (Item, error) {
	size, used, err := usage(path)
	return Item{Kind: kind, Bytes: size, Name: path, used: used,
		remove: func(context.Context) error { return os.RemoveAll(path) }}, err
}

// usage returns the bytes that the files at path and below it take, and when the last of
// them was read or written. A file system that is mounted with noatime knows of writes only.
func usage(path string) (size int64, used time.Time, err error) {
	err = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err != nil {
			return ignoreGone(err)
		}
		at := info.ModTime()
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			size += stat.Blocks * 512
			if read := time.Unix(stat.Atim.Unix()); read.After(at) {
				at = read
			}
		}
		if at.After(used) {
			used = at
		}
		return nil
	})
	return size, used, err
}

// ignoreGone is for files that another process removes meanwhile.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
