// Package clean finds what podenv made and no series needs any more, and removes it: node images
// in the container engine, trees and builds of deleted series, and cached files that were not
// read for a while. podenv can make all of that again. It never removes a tree with edits.
package clean

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/nodeimage"
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
	Kind   string `json:"kind"`   // image, tree, build, cache or scratch
	Bytes  int64  `json:"bytes"`  // of an image, with the layers that it shares with others
	Name   string `json:"name"`   // a reference, or a path
	Why    string `json:"why"`

	used   time.Time // when a file was last read or written
	remove func(context.Context) error
}

// List returns all items, those to remove and those to keep, and why. It changes nothing. Cached files that
// were unused for that long are removed. If e is nil, the list has no images.
func List(ctx context.Context, l layout.Layout, e *engine.Engine, unusedFor time.Duration) ([]Item, error) {
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
	unused, errUnused := unused(l, time.Now().Add(-unusedFor))
	return slices.Concat(items, trees, builds, unused), errors.Join(errTrees, errBuilds, errUnused)
}

// Run removes the items whose Action is Remove. It continues after an error, and returns all
// errors.
func Run(ctx context.Context, items []Item) (err error) {
	for _, item := range items {
		if item.Action != Remove {
			continue
		}
		if ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if failed := item.remove(ctx); failed != nil {
			err = errors.Join(err, fmt.Errorf("removing %s %s: %w", item.Kind, item.Name, failed))
		}
	}
	return err
}

// image is an image as `docker image inspect` prints it.
type image struct {
	ID       string
	RepoTags []string
	Created  string
	Size     int64
	Config   struct{ Labels map[string]string }
	RootFS   struct{ Layers []string }
}

// images returns podenv's images in the engine. Of the node images, the newest of each version
// and those that containers use stay. Base images of these stay, too.
func images(ctx context.Context, e *engine.Engine, releases map[string]string) ([]Item, error) {
	nodes, errNodes := inspect(ctx, e, "podenv/node")
	bases, errBases := inspect(ctx, e, "podenv/node-base")
	containers, errContainers := containersByImage(ctx, e)
	if err := errors.Join(errNodes, errBases, errContainers); err != nil {
		return nil, err
	}
	slices.SortStableFunc(nodes, func(a, b image) int { return strings.Compare(b.Created, a.Created) })
	var items []Item
	var kept []image
	newest := map[string]bool{}
	for _, node := range nodes {
		version := node.Config.Labels[nodeimage.VersionLabel]
		release, _, patched := strings.Cut(version, "+")
		name := releases[release]
		item := node.item(e, Keep, "container "+containers[node.ID]+" is made from it")
		switch {
		case containers[node.ID] != "":
		case name == "":
			item.Action, item.Why = Remove, fmt.Sprintf("no series is based on Kubernetes %s", version)
		case newest[fmt.Sprint(release, patched)]:
			item.Action, item.Why = Remove, "there is a newer one than "+version
		case patched:
			item.Why = "the newest of series " + name
		default:
			item.Why = "the newest of series " + name + " without patches"
		}
		newest[fmt.Sprint(release, patched)] = true
		if item.Action == Keep {
			kept = append(kept, node)
		}
		items = append(items, item)
	}
	for _, base := range bases {
		item := base.item(e, Remove, "no node image that stays is built on it")
		if containers[base.ID] != "" {
			item.Action, item.Why = Keep, "container "+containers[base.ID]+" is made from it"
		} else if slices.ContainsFunc(kept, base.isBelow) {
			item.Action, item.Why = Keep, "node images that stay are built on it"
		}
		items = append(items, item)
	}
	return items, nil
}

// isBelow reports whether other has all layers of base, and more above them.
func (base image) isBelow(other image) bool {
	n := len(base.RootFS.Layers)
	return n < len(other.RootFS.Layers) && slices.Equal(base.RootFS.Layers, other.RootFS.Layers[:n])
}

func (i image) item(e *engine.Engine, action, why string) Item {
	return Item{Action: action, Kind: "image", Bytes: i.Size, Name: strings.Join(i.RepoTags, " "), Why: why,
		// By name and without force, so that Docker refuses if a container uses the image by now.
		remove: func(ctx context.Context) error {
			return e.Docker(ctx, append([]string{"image", "rm"}, i.RepoTags...)...).Run()
		}}
}

// inspect returns the engine's images of a repository.
func inspect(ctx context.Context, e *engine.Engine, repository string) ([]image, error) {
	ids, err := e.Docker(ctx, "image", "ls", "--quiet", "--no-trunc", repository).Output()
	if err != nil || ids == "" {
		return nil, err
	}
	distinct := sets.New(strings.Fields(ids)...)
	out, err := e.Docker(ctx, append([]string{"image", "inspect"}, sets.List(distinct)...)...).Output()
	if err != nil {
		return nil, err
	}
	var images []image
	if err := json.Unmarshal([]byte(out), &images); err != nil {
		return nil, fmt.Errorf("reading what docker image inspect prints: %w", err)
	}
	return images, nil
}

// containersByImage returns the name of a container for each image ID that has one.
func containersByImage(ctx context.Context, e *engine.Engine) (map[string]string, error) {
	ids, err := e.Docker(ctx, "ps", "--all", "--quiet").Output()
	if err != nil || ids == "" {
		return nil, err
	}
	args := append([]string{"container", "inspect", "--format", "{{.Image}} {{.Name}}"}, strings.Fields(ids)...)
	out, err := e.Docker(ctx, args...).Output()
	if err != nil {
		return nil, err
	}
	containers := map[string]string{}
	for line := range strings.Lines(out) {
		id, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		containers[id] = strings.TrimPrefix(name, "/")
	}
	return containers, nil
}
