package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"podenv.dev/hack/internal/remedy"
)

// BridgeAddress returns the IPv4 address at which containers on Docker's default network
// reach this host: that of the network's bridge.
//
// The address comes from the host's interface, not from the network's IPAM settings. When
// dockerd creates the bridge, it records only a subnet. It records a gateway once it finds
// the bridge at a later start, so a new engine reports none.
func (e *Engine) BridgeAddress(ctx context.Context) (string, error) {
	out, err := e.Docker(ctx, "network", "inspect", "bridge").Output()
	if err != nil {
		return "", err
	}
	var networks []struct{ Options map[string]string }
	if err := json.Unmarshal([]byte(out), &networks); err != nil {
		return "", fmt.Errorf("reading the output of docker network inspect bridge: %w", err)
	}
	if len(networks) != 1 {
		return "", fmt.Errorf("docker network inspect bridge describes %d networks, want 1", len(networks))
	}
	name := networks[0].Options["com.docker.network.bridge.name"]
	address, err := interfaceAddress(name)
	if err != nil {
		return "", remedy.New(
			fmt.Errorf("the bridge %q of Docker's default network is not usable from here: %w", name, err),
			"use an engine whose bridge is an interface of this host: `docker network inspect bridge` names it, `ip -4 address` shows those of this host",
		)
	}
	return address, nil
}

// interfaceAddress returns the first IPv4 address of a network interface of this host.
func interfaceAddress(name string) (string, error) {
	device, err := net.InterfaceByName(name)
	if err != nil {
		return "", err
	}
	addresses, err := device.Addrs()
	if err != nil {
		return "", err
	}
	for _, address := range addresses {
		if ip, ok := address.(*net.IPNet); ok && ip.IP.To4() != nil {
			return ip.IP.String(), nil
		}
	}
	return "", errors.New("the interface has no IPv4 address")
}
