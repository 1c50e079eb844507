package cluster

import (
	"context"
	"fmt"
	"regexp"
	"sync"
)

// tags are names that a swap has given to images on nodes, or found there from an
// earlier one, by node, the newest last.
type tags struct {
	sync.Mutex
	of map[string][]string
}

func (t *tags) add(node, image string) {
	t.Lock()
	defer t.Unlock()
	if t.of == nil {
		t.of = make(map[string][]string)
	}
	t.of[node] = append(t.of[node], image)
}

// tagTime is the end of a tag that anew has made.
var tagTime = regexp.MustCompile(`-at[0-9]+$`)

// anew returns the manifest with another name for the image that it has. For the kubelet
// a container is another one only if its image or its own name is: it would not notice
// another command, and it would hold a container that it has run before, or that has been
// ended beside it, in a back-off of up to five minutes.
func (s *staticSwap) anew(ctx context.Context, node Node, manifest string) (string, error) {
	uid := s.uids[node.Name]
	if uid == "" {
		return manifest, nil
	}
	image, err := podImage(manifest, s.component)
	if err != nil {
		return "", err
	}
	// The name without a time stays on the node. That of an original may be gone: an
	// operation since has replaced it.
	lasting := tagTime.ReplaceAllString(image, "")
	name := fmt.Sprintf("%s-at%d", lasting, s.turned.UnixMilli())
	if _, err := s.Exec(ctx, node.Name, "ctr", "--namespace=k8s.io", "images", "tag", "--force", lasting, name); err != nil {
		return "", err
	}
	if tagTime.MatchString(image) {
		s.tags.add(node.Name, image)
	}
	s.tags.add(node.Name, name)
	return editPod(manifest, s.component, podEdit{uid: uid, image: name})
}

// tagOriginal sees that the image which the original names is on the node: a push before
// has given it a name with a time, which an operation since has removed.
func (s *staticSwap) tagOriginal(ctx context.Context, node Node) error {
	image, err := podImage(s.after[node.Name], s.component)
	if err != nil {
		return fmt.Errorf("%s: %w", beside(s.manifest(), asOriginal), err)
	}
	if lasting := tagTime.ReplaceAllString(image, ""); lasting != image {
		_, err = s.Exec(ctx, node.Name, "ctr", "--namespace=k8s.io", "images", "tag", "--force", lasting, image)
	}
	return err
}

// clean removes the names of images that no manifest has any more.
func (s *staticSwap) clean(ctx context.Context) error {
	return s.each(ctx, func(ctx context.Context, node Node) error {
		current, err := s.Exec(ctx, node.Name, "cat", s.manifest())
		if err != nil {
			return err
		}
		image, err := podImage(current, s.component)
		if err != nil {
			return err
		}
		args := []string{"ctr", "--namespace=k8s.io", "images", "rm"}
		for _, tag := range s.tags.of[node.Name] {
			if tag != image {
				args = append(args, tag)
			}
		}
		if len(args) == 4 {
			return nil
		}
		_, err = s.Exec(ctx, node.Name, args...)
		return err
	})
}
