package main

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
)

// chain is podnet's chain of the nat table.
const chain = "PODNET-MASQUERADE"

// lockWait is how many seconds to wait for kube-proxy to let go of the tables.
const lockWait = "10"

// setMasquerade gives what the node's own pods send out of the pod network the node's
// address: nothing outside knows a way back to a pod.
func (h *host) setMasquerade(ctx context.Context, own, pods []netip.Prefix) error {
	for _, cidr := range own {
		tables := "/usr/sbin/iptables"
		if !cidr.Addr().Is4() {
			tables = "/usr/sbin/ip6tables"
		}
		// Restoring a chain replaces its rules at once: there is no moment without them.
		if _, err := h.run(ctx, masqueradeRules(cidr, pods), tables+"-restore", "--wait", lockWait, "--noflush"); err != nil {
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

// masqueradeRules is podnet's chain, as iptables-restore reads it, for the family of cidr.
func masqueradeRules(cidr netip.Prefix, pods []netip.Prefix) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*nat\n:%s - [0:0]\n", chain)
	for _, subnet := range pods {
		if subnet.Addr().Is4() == cidr.Addr().Is4() {
			fmt.Fprintf(&b, "-A %s -d %s -j RETURN\n", chain, subnet)
		}
	}
	fmt.Fprintf(&b, "-A %s -j MASQUERADE\nCOMMIT\n", chain)
	return b.String()
}
