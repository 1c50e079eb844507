package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"podenv.dev/hack/internal/remedy"
)

// network is what Docker 20.10 prints of its default network.
func network(ipam, bridge string) string {
	return fmt.Sprintf(`[{"Name": "bridge", "Driver": "bridge", "IPAM": {"Driver": "default", "Options": null, "Config": [%s]},
		"Options": {"com.docker.network.bridge.default_bridge": "true", "com.docker.network.bridge.name": %q}}]`, ipam, bridge)
}

func TestBridgeAddress(t *testing.T) {
	for name, tc := range map[string]struct {
		reply, want, wantErr string
	}{
		"a new engine reports no gateway":        {network(`{"Subnet": "172.17.0.0/16"}`, "lo"), "127.0.0.1", ""},
		"the interface counts, not the gateway":  {network(`{"Subnet": "172.17.0.0/16", "Gateway": "172.17.0.1"}`, "lo"), "127.0.0.1", ""},
		"the bridge is on another host":          {network(`{"Subnet": "172.17.0.0/16", "Gateway": "172.17.0.1"}`, "no-such-bridge"), "", `"no-such-bridge"`},
		"the network has no bridge":              {`[{"Name": "bridge", "Driver": "null", "Options": {}}]`, "", `ip -4 address`},
		"the reply is not a list of one network": {`[]`, "", "docker network inspect"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.write("reply", tc.reply, 0o644)
			f.script("docker", `test "$*" = "network inspect bridge" && cat $F/reply`)
			got, err := (&Engine{}).BridgeAddress(t.Context())
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if tc.wantErr == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("error %v, want one with %q", err, tc.wantErr)
			}
		})
	}
}

func TestBridgeAddressErrorHasARemedy(t *testing.T) {
	f := newFake(t)
	f.write("reply", network(`{}`, "no-such-bridge"), 0o644)
	f.script("docker", `cat $F/reply`)
	_, err := (&Engine{}).BridgeAddress(t.Context())
	if host := (*remedy.Error)(nil); !errors.As(err, &host) || host.Remedy == "" {
		t.Errorf("error %v, want a remedy.Error with a remedy", err)
	}
}
