package cluster

import (
	"context"
	"strings"
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
// stopped one included, is in it.
func (d docker) removeNetwork(ctx context.Context) error {
	ours, err := d.networkWith(ctx, "label="+labelNetwork)
	if err != nil || !ours {
		return err
	}
	users, err := d(ctx, "ps", "--all", "--quiet", "--filter=network="+network).Output()
	if err != nil || users != "" {
		return err
	}
	err = d(ctx, "network", "rm", network).Run()
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
