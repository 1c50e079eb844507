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

// trees returns the assembled sources, without the repositories of rebases. A tree is removed if its series is gone and it has no edits.
func trees(ctx context.Context, l layout.Layout, names []string) ([]Item, error) {
	return folders(l.Tree("*v[0-9]*"), names, func(name string) error {
		minor, stock := strings.CutSuffix(name, "-stock")
		return source.CheckUnedited(ctx, l, series.Series{Name: minor}, stock)
	})
}

// builds returns the binaries and images of trees. They are removed if their series is gone.
func builds(l layout.Layout, names []string) ([]Item, error) {
	return folders(l.Build("*"), names, func(string) error { return nil })
}

// folders returns the directories that match pattern. Each has the name of a series, "v1.33", or
// of its stock release, "v1.33-stock". If the series is gone, the directory is removed, unless
// check returns an error, which is why it stays.
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

// unused returns cached results, reports and the directories that tests work in. They are
// removed if nothing has read or written them since the given time. Cached files are named by
// a hash of their inputs, so nothing opens a file again whose inputs have changed.
func unused(l layout.Layout, since time.Time) ([]Item, error) {
	var items []Item
	for _, place := range []struct{ kind, pattern string }{
		{"cache", l.Cache("*/*")},
		{"scratch", filepath.Join(l.Output(), "verify", "*")},
		{"scratch", filepath.Join(l.Output(), "bench")},
		{"scratch", filepath.Join(l.Output(), "proof", "*")},
		{"scratch", filepath.Join(l.Output(), "conformance", "*")},
		{"scratch", filepath.Join(l.Output(), "gates", "*")},
		{"scratch", filepath.Join(l.Output(), "fresh-*")},
		{"scratch", filepath.Join(l.Logs(), "*")},
	} {
		paths, err := filepath.Glob(place.pattern)
		if err != nil {
			return nil, err
		}
		kept := map[string]*Item{} // one item for everything that stays in a directory
		for _, path := range paths {
			if strings.HasSuffix(path, "lock") {
				continue // another process may wait for it
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
			dir := filepath.Dir(path)
			if kept[dir] == nil {
				kept[dir] = &Item{Action: Keep, Kind: place.kind, Name: dir, Why: "what it still has is in use"}
			}
			kept[dir].Bytes += item.Bytes
		}
		for _, dir := range slices.Sorted(maps.Keys(kept)) {
			items = append(items, *kept[dir])
		}
	}
	return items, nil
}

// folder returns the item of a file or directory.
func folder(kind, path string) (Item, error) {
	size, used, err := usage(path)
	return Item{Kind: kind, Bytes: size, Name: path, used: used,
		remove: func(context.Context) error { return os.RemoveAll(path) }}, err
}

// usage returns the size on disk of the files at and below path, in bytes, and when one of them
// was last read or written. A file system that is mounted with noatime only records writes.
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

// ignoreGone ignores that another process has removed a file.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
