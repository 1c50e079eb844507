package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/lockfile"
)

// kind puts the nodes of all clusters into one network, which it makes without a
// label. Made beforehand with one, it can be told from a network of plain kind, and
// deleted with the last node.
const (
	network      = "kind"
	labelNetwork = "podenv.dev/network"
	// networkSubnet6 is the IPv6 subnet that kind derives from the network's name.
	networkSubnet6 = "fc00:f853:ccd:e793::/64"
)

// Locks that all checkouts of a user share, as their clusters share the network.
const (
	// networkUse is held by those who make nodes that are not in the network yet, several
	// at a time, and by one who looks whether anybody is in it and deletes it.
	networkUse = "network.lock"
	// networkMake is held by one who looks whether there is the network and makes it:
	// asked twice at the same moment, docker makes two of one name.
	networkMake = "network-make.lock"
)

// errNetworkHeld is what lockNetwork returns while another podenv has the lock.
var errNetworkHeld = errors.New("another podenv that makes nodes or deletes the network " + network)

func lockNetwork(name string, try func(string) (func(), error)) (unlock func(), err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("no place for a lock: %w: set HOME", err)
	}
	unlock, err = try(filepath.Join(cache, "podenv", name))
	if errors.Is(err, lockfile.ErrHeld) {
		return nil, errNetworkHeld
	}
	return unlock, err
}

// awaitNetwork calls try again for as long as another podenv has the network.
func awaitNetwork(ctx context.Context, try func(context.Context) error) error {
	return poll(ctx, cleanupTime, func(ctx context.Context) error {
		err := try(ctx)
		if err != nil && !errors.Is(err, errNetworkHeld) {
			return fatal{err}
		}
		return err
	})
}

// HoldNetwork makes docker's network kind, which all clusters share, if there is none,
// and keeps every podenv of this user from deleting it until unlock is called. By then
// the caller's nodes have to be in it.
func HoldNetwork(ctx context.Context, e *engine.Engine) (unlock func(), err error) {
	return docker(e.Docker).holdNetwork(ctx)
}

// RemoveNetwork deletes docker's network kind if podenv made it, no container is in it
// and nobody holds it.
func RemoveNetwork(ctx context.Context, e *engine.Engine) error {
	return docker(e.Docker).removeNetwork(ctx)
}

func (d docker) holdNetwork(ctx context.Context) (unlock func(), err error) {
	err = awaitNetwork(ctx, func(context.Context) error {
		unlock, err = lockNetwork(networkUse, lockfile.TryShare)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("using docker's network %s: %w", network, err)
	}
	err = awaitNetwork(ctx, func(ctx context.Context) error {
		made, err := lockNetwork(networkMake, lockfile.TryLock)
		if err != nil {
			return err
		}
		defer made()
		return d.ensureNetwork(ctx)
	})
	if err != nil {
		unlock()
		return nil, explain(fmt.Errorf("making docker's network %s: %w", network, err))
	}
	return unlock, nil
}

// ensureNetwork makes the network as kind would, if there is none.
func (d docker) ensureNetwork(ctx context.Context) error {
	exists, err := d.networkWith(ctx)
	if err != nil || exists {
		return err
	}
	args := []string{"network", "create", "--driver=bridge", "--label=" + labelNetwork,
		"--opt=com.docker.network.bridge.enable_ip_masquerade=true"}
	mtu, err := d(ctx, "network", "inspect", "bridge", "--format", `{{index .Options "com.docker.network.driver.mtu"}}`).Output()
	if err == nil && mtu != "" && mtu != "0" {
		args = append(args, "--opt=com.docker.network.driver.mtu="+mtu)
	}
	if d(ctx, append(args, "--ipv6", "--subnet="+networkSubnet6, network)...).Run() == nil {
		return nil
	}
	// Many hosts have no IPv6, or no ip6tables; what else is wrong fails again.
	return d(ctx, append(args, network)...).Run()
}

// removeNetwork deletes the network if this package made it and no container, a
// stopped one included, is in it or about to be.
func (d docker) removeNetwork(ctx context.Context) error {
	return awaitNetwork(ctx, func(ctx context.Context) error {
		// Those whose nodes are in it delete it after them, so they are not waited for.
		idle, err := d.networkIdle(ctx)
		if err != nil || !idle {
			return err
		}
		unlock, err := lockNetwork(networkUse, lockfile.TryLock)
		if err != nil {
			return err
		}
		defer unlock()
		if idle, err = d.networkIdle(ctx); err != nil || !idle {
			return err
		}
		return d.removeIdleNetwork(ctx)
	})
}

// networkIdle says whether the network is ours and no container is in it.
func (d docker) networkIdle(ctx context.Context) (bool, error) {
	ours, err := d.networkWith(ctx, "label="+labelNetwork)
	if err != nil || !ours {
		return false, err
	}
	users, err := d(ctx, "ps", "--all", "--quiet", "--filter=network="+network).Output()
	return users == "", err
}

func (d docker) removeIdleNetwork(ctx context.Context) error {
	err := d(ctx, "network", "rm", network).Run()
	if err != nil && strings.Contains(err.Error(), "active endpoints") {
		return nil // a container has joined since
	}
	return err
}

// networkWith says whether there is a network of kind's name that passes the filters.
func (d docker) networkWith(ctx context.Context, filters ...string) (bool, error) {
	args := []string{"network", "ls", "--quiet", "--filter=name=^" + network + "$"}
	for _, f := range filters {
		args = append(args, "--filter="+f)
	}
	ids, err := d(ctx, args...).Output()
	return ids != "", err
}
