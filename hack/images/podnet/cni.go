package main

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
)

// cniFile is where containerd looks for the node's CNI configuration.
const cniFile = "etc/cni/net.d/10-podnet.conflist"

// writeCNI writes the node's CNI configuration if it differs: containerd reloads it on every
// change.
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
