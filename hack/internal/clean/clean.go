// Package clean finds what podenv made and no series needs any more, and removes it: node images
// in the container engine, trees and builds of deleted series, and cached files that were not
// read for a while. podenv can make all of that again. It never removes a tree with edits.
package clean

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
)

// The values of an Item's Action.
const (
	Remove = "remove"
	Keep   = "keep"
)

// Item is something on the disk that podenv made.
type Item struct {
	Action string `json:"action"` // Remove or Keep
	Kind   string `json:"kind"`   // image, tree, build, cache, scratch or go
	Bytes  int64  `json:"bytes"`  // of an image, with the layers that it shares with others
	Name   string `json:"name"`   // a reference, or a path
	Why    string `json:"why"`

	used   time.Time // when a file was last read or written
	remove func(context.Context) error
}

// Options are the options of List.
type Options struct {
	UnusedFor time.Duration // how long a cached file must be unused to be removed
	GoCache   bool          // also remove Go's build cache, which other projects share
}

// List returns all items, those to remove and those to keep, and why. It changes nothing. If e is
// nil, the list has no images.
func List(ctx context.Context, l layout.Layout, e *engine.Engine, o Options) ([]Item, error) {
	all, err := series.LoadAll(l)
	if err != nil {
		return nil, err
	}
	var names []string
	releases := map[string]string{} // series by release
	for _, s := range all {
		names = append(names, s.Name)
		releases[s.Release] = s.Name
	}
	var items []Item
	if e != nil {
		if items, err = images(ctx, e, releases); err != nil {
			return nil, err
		}
	}
	trees, errTrees := trees(ctx, l, names)
	builds, errBuilds := builds(l, names)
	unused, errUnused := unused(l, time.Now().Add(-o.UnusedFor))
	caches, errCaches := goCaches(ctx, o.GoCache)
	return slices.Concat(items, trees, builds, unused, caches), errors.Join(errTrees, errBuilds, errUnused, errCaches)
}

// Run removes the items whose Action is Remove. It continues after an error, and returns all
// errors.
func Run(ctx context.Context, items []Item) error {
	var errs []error
	for _, item := range items {
		if item.Action != Remove {
			continue
		}
		if ctx.Err() != nil {
			return errors.Join(append(errs, ctx.Err())...)
		}
		if err := item.remove(ctx); err != nil {
			errs = append(errs, fmt.Errorf("removing %s %s: %w", item.Kind, item.Name, err))
		}
	}
	return errors.Join(errs...)
}

// goCaches returns the caches of the go command, which other projects share.
func goCaches(ctx context.Context, empty bool) ([]Item, error) {
	out, err := run.Command(ctx, "go", "env", "GOCACHE", "GOMODCACHE").Dir("/").Output()
	if err != nil {
		return nil, err
	}
	builds, modules, _ := strings.Cut(out, "\n")
	cache := Item{Action: Keep, Kind: "go", Name: builds, Why: "Go removes what it has not used for 5 days; --go-cache empties it, and the next build takes minutes longer"}
	if empty {
		cache.Action, cache.Why = Remove, "--go-cache is given"
		cache.remove = func(ctx context.Context) error { return run.Command(ctx, "go", "clean", "-cache").Dir("/").Run() }
	}
	items := []Item{cache, {Action: Keep, Kind: "go", Name: modules, Why: "modules of all projects; `go clean -modcache` empties it"}}
	for i := range items {
		if items[i].Bytes, _, err = usage(items[i].Name); err != nil {
			return nil, err
		}
	}
	return items, nil
}
