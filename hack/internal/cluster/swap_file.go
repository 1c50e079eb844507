package cluster

import (
	"context"
	"fmt"
	"os"
)

// binDir is where kind's nodes have the kubelet, kubeadm and kubectl.
const binDir = "/usr/bin/"

// What a file that a swap replaces has beside it, see beside: what is to come, what was
// there before the swap, and what was there before node operations.
const (
	asNew      = "new"
	asOld      = "old"
	asOriginal = "original"
)

// fileSwap swaps what is run when it is needed: kubeadm and kubectl.
type fileSwap struct{ *swap }

func (s *swap) path() string { return binDir + s.component }

func (s *fileSwap) running(ctx context.Context, node Node) (string, error) {
	return s.sumNode(ctx, node.Name, s.path())
}

func (s *fileSwap) put(ctx context.Context) error {
	return s.each(ctx, func(ctx context.Context, node Node) error { return s.putFile(ctx, node) })
}

func (s *fileSwap) turn(ctx context.Context) error  { return s.move(ctx, asNew, s.path()) }
func (s *fileSwap) back(ctx context.Context) error  { return s.move(ctx, asOld, s.path()) }
func (s *fileSwap) clean(ctx context.Context) error { return s.remove(ctx, s.path()) }

func (s *fileSwap) serves(ctx context.Context, want state) error {
	version := map[string][]string{"kubeadm": {"version"}, "kubectl": {"version", "--client"}}[s.component]
	return s.each(ctx, func(ctx context.Context, node Node) error {
		have, err := s.running(ctx, node)
		if err != nil {
			return err
		}
		if have != want.SHA256 {
			return fmt.Errorf("%s has SHA-256 %s, want %s", s.path(), have, want.SHA256)
		}
		_, err = s.Exec(ctx, node.Name, append([]string{s.path()}, version...)...)
		return err
	})
}

func (s *fileSwap) files() []string                                    { return []string{s.path()} }
func (s *fileSwap) tail(context.Context, Node) string                  { return "" }
func (s *fileSwap) set(context.Context, Node) (map[string]bool, error) { return nil, nil }

// putFile copies the binary to a node beside the one in use, and keeps that one.
func (s *swap) putFile(ctx context.Context, node Node) error {
	f, err := os.Open(s.binary)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := s.write(ctx, node, f, beside(s.path(), asNew), "0755"); err != nil {
		return err
	}
	return s.linkOn(ctx, node, s.path(), beside(s.path(), asOld))
}

// linkOn gives a file on a node another name. What swaps is renamed over the first one,
// so that the two part then.
func (s *swap) linkOn(ctx context.Context, node Node, file, name string) error {
	_, err := s.Exec(ctx, node.Name, "ln", "--force", file, name)
	return err
}

// keepOriginal keeps files on a node as they are before node operations.
func (s *swap) keepOriginal(ctx context.Context, node Node, files []string) error {
	for _, file := range files {
		if err := s.linkOn(ctx, node, file, beside(file, asOriginal)); err != nil {
			return err
		}
	}
	return nil
}

// dropOriginal removes what keepOriginal has kept.
func (s *swap) dropOriginal(ctx context.Context, node Node, files []string) error {
	args := []string{"rm", "--force"}
	for _, file := range files {
		args = append(args, beside(file, asOriginal))
	}
	_, err := s.Exec(ctx, node.Name, args...)
	return err
}

// moveScript renames $1 to $2. mv refuses where both are one file already.
const moveScript = `[ "$1" -ef "$2" ] || mv --force "$1" "$2"`

func (s *swap) moveOn(ctx context.Context, node Node, from, to string) error {
	_, err := s.Exec(ctx, node.Name, "sh", "-c", moveScript, "sh", from, to)
	return err
}

// move renames what files have beside them for a purpose to the files, on all nodes.
func (s *swap) move(ctx context.Context, purpose string, files ...string) error {
	return s.each(ctx, func(ctx context.Context, node Node) error {
		for _, file := range files {
			if err := s.moveOn(ctx, node, beside(file, purpose), file); err != nil {
				return err
			}
		}
		return nil
	})
}

// remove removes what a swap leaves beside files, on all nodes.
func (s *swap) remove(ctx context.Context, files ...string) error {
	args := []string{"rm", "--force"}
	for _, file := range files {
		args = append(args, beside(file, asNew), beside(file, asOld))
	}
	return s.each(ctx, func(ctx context.Context, node Node) error {
		_, err := s.Exec(ctx, node.Name, args...)
		return err
	})
}
