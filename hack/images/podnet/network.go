package main

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// route is the route to the pods of a node: those of prefix are reached via the node's address.
type route struct {
	prefix netip.Prefix
	via    netip.Addr
}

// sync configures the node's network for the current nodes of the cluster. It writes the CNI
// configuration last, because that makes the node Ready: its pods must reach the others then.
func sync(ctx context.Context, h *host, name string, podSubnets []netip.Prefix, nodes cache.Store) error {
	obj, found, err := nodes.GetByKey(name)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("there is no node %q in the cluster yet", name)
	}
	self := obj.(*v1.Node)
	cidrs, err := podCIDRs(self)
	if err != nil {
		return err
	}
	if len(cidrs) == 0 {
		return fmt.Errorf("node %s has no pod CIDR yet", name)
	}
	var others []*v1.Node
	for _, obj := range nodes.List() {
		if node := obj.(*v1.Node); node.Name != name {
			others = append(others, node)
		}
	}
	routes, err := routesTo(others)
	if err != nil {
		return err
	}
	if err := h.setRoutes(ctx, routes); err != nil {
		return err
	}
	if err := h.setMasquerade(ctx, cidrs, podSubnets); err != nil {
		return err
	}
	return h.writeCNI(cidrs, mtu(addresses(self)))
}

// routesTo returns the routes to the pods of nodes, sorted. A node without a pod CIDR, or without
// an address of the CIDR's family, has no route yet.
func routesTo(nodes []*v1.Node) ([]route, error) {
	var routes []route
	for _, node := range nodes {
		cidrs, err := podCIDRs(node)
		if err != nil {
			return nil, err
		}
		for _, cidr := range cidrs {
			for _, addr := range addresses(node) {
				if addr.Is4() == cidr.Addr().Is4() {
					routes = append(routes, route{prefix: cidr, via: addr})
					break
				}
			}
		}
	}
	slices.SortFunc(routes, func(a, b route) int { return cmp.Compare(a.prefix.String(), b.prefix.String()) })
	return routes, nil
}

func podCIDRs(node *v1.Node) ([]netip.Prefix, error) {
	cidrs, err := parsePrefixes(node.Spec.PodCIDRs) // the API server also puts PodCIDR there
	if err != nil {
		return nil, fmt.Errorf("node %s: pod CIDR: %w", node.Name, err)
	}
	return cidrs, nil
}

func parsePrefixes(list []string) (prefixes []netip.Prefix, err error) {
	for _, s := range list {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(s))
		if err != nil {
			return nil, err
		}
		prefixes = append(prefixes, prefix.Masked())
	}
	return prefixes, nil
}

// addresses returns the node's internal IP addresses.
func addresses(node *v1.Node) []netip.Addr {
	var addrs []netip.Addr
	for _, a := range node.Status.Addresses {
		if a.Type != v1.NodeInternalIP {
			continue
		}
		if addr, err := netip.ParseAddr(a.Address); err == nil {
			addrs = append(addrs, addr.Unmap())
		}
	}
	return addrs
}

func parseSubnets(list string) ([]netip.Prefix, error) {
	subnets, err := parsePrefixes(strings.Split(list, ","))
	if err != nil {
		return nil, fmt.Errorf("pod subnet: %w: set POD_SUBNET", err)
	}
	return subnets, nil
}
