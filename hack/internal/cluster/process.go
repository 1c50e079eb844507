package cluster

import (
	"context"
	"fmt"
	"strings"
)

// processes knows the builds of the processes that it has seen on a node, so that
// waiting for one does not hash executables over and over.
type processes struct {
	*Cluster
	sums map[string]string // by process ID
}

// sum is the SHA-256 of the executable of the process pid of node.
func (p *processes) sum(ctx context.Context, node, pid string) (string, error) {
	if sum, ok := p.sums[pid]; ok {
		return sum, nil
	}
	sum, err := p.sumNode(ctx, node, "/proc/"+pid+"/exe")
	if err != nil {
		return "", err
	}
	if p.sums == nil {
		p.sums = make(map[string]string)
	}
	p.sums[pid] = sum
	return sum, nil
}

// only returns the build of the one process of node with the name of its executable.
func (p *processes) only(ctx context.Context, node, name string) (string, error) {
	pid, err := p.pid(ctx, node, name)
	if err != nil {
		return "", err
	}
	return p.sum(ctx, node, pid)
}

// pid is the one process of node with the name of its executable.
func (c *Cluster) pid(ctx context.Context, node, name string) (string, error) {
	out, err := c.Exec(ctx, node, "pidof", name)
	if err != nil {
		return "", fmt.Errorf("%s does not run", name)
	}
	pids := strings.Fields(out)
	if len(pids) != 1 {
		return "", fmt.Errorf("%d processes of %s run: %s", len(pids), name, out)
	}
	return pids[0], nil
}

// sumNode is the SHA-256 of a file on a node.
func (c *Cluster) sumNode(ctx context.Context, node, path string) (string, error) {
	out, err := c.Exec(ctx, node, "sha256sum", path)
	if err != nil {
		return "", err
	}
	sum, _, _ := strings.Cut(out, " ")
	if len(sum) != 64 {
		return "", fmt.Errorf("sha256sum printed %q", out)
	}
	return sum, nil
}
