package main

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
)

// chain is podnet's chain in the nat table.
const chain = "PODNET-MASQUERADE"

// lockWait is how many seconds to wait for kube-proxy to release the xtables lock.
const lockWait = "10"

// setMasquerade masquerades what the node's pods send out of the pod network with the node's
// address, because nothing outside has a route to a pod.
func (h *host) setMasquerade(ctx context.Context, cidrs, podSubnets []netip.Prefix) error {
	for _, cidr := range cidrs {
		tables := "/usr/sbin/iptables"
		if !cidr.Addr().Is4() {
			tables = "/usr/sbin/ip6tables"
		}
		// iptables-restore replaces the rules of a chain atomically.
		if _, err := h.run(ctx, masqueradeRules(cidr, podSubnets), tables+"-restore", "--wait", lockWait, "--noflush"); err != nil {
			return err
		}
		jump := []string{"POSTROUTING", "-s", cidr.String(), "-m", "addrtype", "!", "--dst-type", "LOCAL", "-m", "comment", "--comment", "podnet: pods to outside", "-j", chain}
		table := []string{tables, "--wait", lockWait, "-t", "nat"}
		if _, err := h.run(ctx, "", append(append(table, "-C"), jump...)...); err == nil {
			continue
		}
		if _, err := h.run(ctx, "", append(append(table, "-A"), jump...)...); err != nil {
			return err
		}
	}
	return nil
}

// masqueradeRules returns podnet's chain for the IP family of cidr, for iptables-restore.
func masqueradeRules(cidr netip.Prefix, podSubnets []netip.Prefix) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*nat\n:%s - [0:0]\n", chain)
	for _, subnet := range podSubnets {
		if subnet.Addr().Is4() == cidr.Addr().Is4() {
			fmt.Fprintf(&b, "-A %s -d %s -j RETURN\n", chain, subnet)
		}
	}
	fmt.Fprintf(&b, "-A %s -j MASQUERADE\nCOMMIT\n", chain)
	return b.String()
}
