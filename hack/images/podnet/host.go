package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
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
		own, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range own {
			prefix, err := netip.ParsePrefix(a.String())
			if err != nil {
				continue
			}
			if slices.Contains(addrs, prefix.Addr().Unmap()) {
				return i.MTU
			}
		}
	}
	return 0
}
