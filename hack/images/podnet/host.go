package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"syscall"
)

// host is the node: its files under root, and its commands.
type host struct {
	root string
	run  func(ctx context.Context, stdin string, argv ...string) (string, error)
}

// chroot returns a function that runs the node's own commands, so that rules are
// written by the iptables that kube-proxy and the node use, whichever it is.
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

// protocol marks the routes that are podnet's (rtm_protocol, as ip-route(8) numbers
// them), so that it takes away its own and no others.
const protocol = "237"

// setRoutes makes want the node's only routes of podnet's.
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

// parseRoutes reads the destinations that `ip -json route show` printed.
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

// mtu is that of the interface which has one of addrs, or 0, which leaves the choice
// to the kernel. Pods whose packets are larger than what their node can send lose them.
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
			for _, addr := range addrs {
				if prefix.Addr().Unmap() == addr {
					return i.MTU
				}
			}
		}
	}
	return 0
}
