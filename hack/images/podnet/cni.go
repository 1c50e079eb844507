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

// writeCNI writes the node's CNI configuration, unless it is as it should be already:
// containerd reloads it on every change.
func (h *host) writeCNI(own []netip.Prefix, mtu int) error {
	conf, err := cniConfig(own, mtu)
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
	// containerd takes any *.conflist, so a half-written one has another name.
	beside := file + ".new"
	if err := os.WriteFile(beside, conf, 0o644); err != nil {
		return err
	}
	return os.Rename(beside, file)
}

// cniConfig connects each pod to its node by a pair of interfaces, with an address of
// each CIDR of own, and maps the host ports that pods ask for.
func cniConfig(own []netip.Prefix, mtu int) ([]byte, error) {
	type object = map[string]any
	var ranges [][]object
	var routes []object
	for _, cidr := range own {
		ranges = append(ranges, []object{{"subnet": cidr.String()}})
		everywhere := "0.0.0.0/0"
		if !cidr.Addr().Is4() {
			everywhere = "::/0"
		}
		routes = append(routes, object{"dst": everywhere})
	}
	ptp := object{
		"type":   "ptp",
		"ipMasq": false, // setMasquerade knows which addresses are pods', the plugin does not
		"ipam": object{
			"type": "host-local",
			// /run does not outlive the node's start, as pods do not.
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
