package cluster

import (
	"context"
	"fmt"
	"os"
)

// binDir is where kind's nodes have the kubelet, kubeadm and kubectl.
const binDir = "/usr/bin/"

// fileSwap swaps what is run when it is needed: kubeadm and kubectl.
type fileSwap struct{ *push }

func (s *push) path() string    { return binDir + s.component }
func (s *push) pathNew() string { return binDir + "." + s.component + ".new" }
func (s *push) pathOld() string { return binDir + "." + s.component + ".old" }

func (s *fileSwap) running(ctx context.Context, node Node) (string, error) {
	return s.sumNode(ctx, node.Name, s.path())
}

func (s *fileSwap) put(ctx context.Context) error  { return s.each(ctx, s.putFile) }
func (s *fileSwap) turn(ctx context.Context) error { return s.move(ctx, s.pathNew()) }
func (s *fileSwap) back(ctx context.Context) error { return s.move(ctx, s.pathOld()) }

func (s *fileSwap) serves(ctx context.Context, sum string) error {
	version := map[string][]string{"kubeadm": {"version"}, "kubectl": {"version", "--client"}}[s.component]
	return s.each(ctx, func(ctx context.Context, node Node) error {
		have, err := s.running(ctx, node)
		if err != nil {
			return err
		}
		if have != sum {
			return fmt.Errorf("%s has SHA-256 %s, want %s", s.path(), have, sum)
		}
		_, err = s.Exec(ctx, node.Name, append([]string{s.path()}, version...)...)
		return err
	})
}

func (s *fileSwap) tail(context.Context, Node) string { return "" }

// putFile copies the binary to a node beside the one in use, and keeps that one.
func (s *push) putFile(ctx context.Context, node Node) error {
	f, err := os.Open(s.binary)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := s.write(ctx, node, f, s.pathNew(), "0755"); err != nil {
		return err
	}
	_, err = s.Exec(ctx, node.Name, "ln", "--force", s.path(), s.pathOld())
	return err
}

// move renames the file from to the path of the binary, on all nodes.
func (s *push) move(ctx context.Context, from string) error {
	return s.each(ctx, func(ctx context.Context, node Node) error {
		_, err := s.Exec(ctx, node.Name, "mv", "--force", from, s.path())
		return err
	})
}

func (s *push) clean(ctx context.Context) error {
	return s.each(ctx, func(ctx context.Context, node Node) error {
		_, err := s.Exec(ctx, node.Name, "rm", "--force", s.pathNew(), s.pathOld())
		return err
	})
}
