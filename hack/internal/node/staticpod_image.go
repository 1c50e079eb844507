package node

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// tagTime matches the time at the end of a tag that renewImage has made.
var tagTime = regexp.MustCompile(`-at[0-9]+$`)

// renewImage gives the image in the manifest a new tag. The kubelet takes a container for a
// new one only if its name or its image's changes: it would not notice another command, and
// it would delay a container that it has run before, or that somebody else has killed, by a
// back-off of up to five minutes.
func (p *staticPod) renewImage(ctx context.Context, manifest string) (string, error) {
	if p.uid == "" {
		return manifest, nil
	}
	image, err := podImage(manifest, p.name)
	if err != nil {
		return "", err
	}
	// The tag without a time stays on the node. An original's tag with a time may be gone,
	// because a later operation has replaced it.
	lasting := tagTime.ReplaceAllString(image, "")
	name := fmt.Sprintf("%s-at%d", lasting, time.Now().UnixMilli())
	if err := p.tag(ctx, lasting, name); err != nil {
		return "", err
	}
	if lasting != image {
		p.tags = append(p.tags, image)
	}
	p.tags = append(p.tags, name)
	return editPod(manifest, p.name, podEdit{uid: p.uid, image: name})
}

// tagOriginal makes sure that the image in the original manifest is on the node. After a
// reverted change, its tag has a time, and a later operation has removed that tag.
func (p *staticPod) tagOriginal(ctx context.Context) error {
	image, err := podImage(p.newManifest, p.name)
	if err != nil {
		return fmt.Errorf("%s: %w", copyPath(p.manifest(), originalSuffix), err)
	}
	if lasting := tagTime.ReplaceAllString(image, ""); lasting != image {
		return p.tag(ctx, lasting, image)
	}
	return nil
}

func (p *staticPod) tag(ctx context.Context, image, name string) error {
	_, err := p.exec(ctx, "ctr", "--namespace=k8s.io", "images", "tag", "--force", image, name)
	return err
}

// cleanUp removes the image tags that the manifest no longer uses.
func (p *staticPod) cleanUp(ctx context.Context) error {
	current, err := p.exec(ctx, "cat", p.manifest())
	if err != nil {
		return err
	}
	image, err := podImage(current, p.name)
	if err != nil {
		return err
	}
	tags := slices.DeleteFunc(p.tags, func(tag string) bool { return tag == image })
	if len(tags) == 0 {
		return nil
	}
	_, err = p.exec(ctx, append([]string{"ctr", "--namespace=k8s.io", "images", "rm"}, tags...)...)
	return err
}
