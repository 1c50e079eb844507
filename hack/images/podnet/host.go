package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// host is the node: its files under root, and its commands.
type host struct {
	root string
	run  func(ctx context.Context, stdin string, argv ...string) (string, error)
}

// chroot returns a function that runs commands of the node, so that podnet uses the same mode of
// iptables as the node and kube-proxy.
func chroot(root string) func(context.Context, string, ...string) (string, error) {
	return func(ctx context.Context, stdin string, argv ...string) (string, error) {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir = "/"
		cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
		cmd.Stdin = strings.NewReader(stdin)
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(errs.String()))
		}
		return out.String(), nil
	}
}

// protocol marks podnet's routes (a number of rtm_protocol, see ip-route(8)), so that it deletes
// only its own.
const protocol = "237"

// setRoutes adds the routes in want to the node and deletes podnet's other routes.
func (h *host) setRoutes(ctx context.Context, want []route) error {
	keep := map[netip.Prefix]bool{}
	for _, r := range want {
		keep[r.prefix] = true
		if _, err := h.run(ctx, "", "/usr/bin/ip", family(r.prefix), "route", "replace", r.prefix.String(), "via", r.via.String(), "proto", protocol); err != nil {
			return err
		}
	}
	for _, f := range []string{"-4", "-6"} {
		out, err := h.run(ctx, "", "/usr/bin/ip", f, "-json", "route", "show", "proto", protocol)
		if err != nil {
			return err
		}
		have, err := parseRoutes(out)
		if err != nil {
			return err
		}
		for _, prefix := range have {
			if keep[prefix] {
				continue
			}
			if _, err := h.run(ctx, "", "/usr/bin/ip", f, "route", "del", prefix.String(), "proto", protocol); err != nil {
				return err
			}
		}
	}
	return nil
}

// parseRoutes returns the destinations in the output of `ip -json route show`.
func parseRoutes(out string) ([]netip.Prefix, error) {
	if strings.TrimSpace(out) == "" {
		return nil, nil
	}
	var routes []struct{ Dst string }
	if err := json.Unmarshal([]byte(out), &routes); err != nil {
		return nil, fmt.Errorf("reading the node's routes: %w", err)
	}
	var prefixes []netip.Prefix
	for _, r := range routes {
		// A route to one address has no mask.
		if addr, err := netip.ParseAddr(r.Dst); err == nil {
			prefixes = append(prefixes, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		prefix, err := netip.ParsePrefix(r.Dst)
		if err != nil {
			return nil, fmt.Errorf("reading the node's routes: %w", err)
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, nil
}

func family(p netip.Prefix) string {
	if p.Addr().Is4() {
		return "-4"
	}
	return "-6"
}

// mtu returns the MTU of the interface with one of addrs, or 0 to leave the choice to the kernel.
// Packets of pods that are larger than their node's MTU are lost.
func mtu(addrs []netip.Addr) int {
	interfaces, err := net.Interfaces()
	if err != nil {
		return 0
	}
	for _, i := range interfaces {
		own, _ := i.Addrs() // an interface that has just gone has none
		for _, a := range own {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil && slices.Contains(addrs, prefix.Addr().Unmap()) {
				return i.MTU
			}
		}
	}
	return 0
}

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

// cniFile is where containerd looks for the node's CNI configuration.
const cniFile = "etc/cni/net.d/10-podnet.conflist"

// writeCNI writes the CNI configuration if it differs: containerd reloads it on every change.
func (h *host) writeCNI(cidrs []netip.Prefix, mtu int) error {
	conf, err := cniConfig(cidrs, mtu)
	if err != nil {
		return err
	}
	file := filepath.Join(h.root, cniFile)
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, conf) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	// containerd loads any *.conflist, so the file gets that name once it is complete.
	temp := file + ".new"
	if err := os.WriteFile(temp, conf, 0o644); err != nil {
		return err
	}
	return os.Rename(temp, file)
}

// cniConfig returns a configuration that connects each pod to its node with a veth pair, gives it
// an address of each CIDR, and maps its host ports.
func cniConfig(cidrs []netip.Prefix, mtu int) ([]byte, error) {
	type object = map[string]any
	var ranges [][]object
	var routes []object
	for _, cidr := range cidrs {
		ranges = append(ranges, []object{{"subnet": cidr.String()}})
		defaultRoute := "0.0.0.0/0"
		if !cidr.Addr().Is4() {
			defaultRoute = "::/0"
		}
		routes = append(routes, object{"dst": defaultRoute})
	}
	ptp := object{
		"type":   "ptp",
		"ipMasq": false, // setMasquerade does it: the plugin does not know the pod network
		"ipam": object{
			"type": "host-local",
			// A restart of the node removes both /run and the pods.
			"dataDir": "/run/cni-ipam-state",
			"ranges":  ranges,
			"routes":  routes,
		},
	}
	if mtu > 0 {
		ptp["mtu"] = mtu
	}
	portmap := object{"type": "portmap", "capabilities": object{"portMappings": true}}
	conf, err := json.MarshalIndent(object{
		"cniVersion": "0.4.0",
		"name":       "podnet",
		"plugins":    []object{ptp, portmap},
	}, "", "  ")
	return append(conf, '\n'), err
}
