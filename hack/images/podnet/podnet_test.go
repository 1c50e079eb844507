package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

func node(name string, cidrs, ips []string) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Spec.PodCIDRs = cidrs
	for _, ip := range ips {
		n.Status.Addresses = append(n.Status.Addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: ip})
	}
	n.Status.Addresses = append(n.Status.Addresses, v1.NodeAddress{Type: v1.NodeHostName, Address: name})
	return n
}

func TestRoutesTo(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes []*v1.Node
		want  string
	}{
		"one family":                     {[]*v1.Node{node("b", []string{"10.244.1.0/24"}, []string{"172.18.0.3"})}, "10.244.1.0/24 172.18.0.3"},
		"each family by its own address": {[]*v1.Node{node("b", []string{"10.244.1.0/24", "fd00:10:244:1::/64"}, []string{"172.18.0.3", "fc00::3"})}, "10.244.1.0/24 172.18.0.3; fd00:10:244:1::/64 fc00::3"},
		"a node without a pod CIDR":      {[]*v1.Node{node("b", nil, []string{"172.18.0.3"})}, ""},
		"a node without an address":      {[]*v1.Node{node("b", []string{"10.244.1.0/24"}, nil)}, ""},
		"in a fixed order": {[]*v1.Node{
			node("c", []string{"10.244.2.0/24"}, []string{"172.18.0.4"}), node("b", []string{"10.244.1.0/24"}, []string{"172.18.0.3"}),
		}, "10.244.1.0/24 172.18.0.3; 10.244.2.0/24 172.18.0.4"},
	} {
		t.Run(name, func(t *testing.T) {
			routes, err := routesTo(tc.nodes)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range routes {
				got = append(got, r.prefix.String()+" "+r.via.String())
			}
			if strings.Join(got, "; ") != tc.want {
				t.Errorf("got %q, want %q", strings.Join(got, "; "), tc.want)
			}
		})
	}
	if _, err := routesTo([]*v1.Node{node("b", []string{"10.244.1.0"}, nil)}); err == nil || !strings.Contains(err.Error(), "node b: pod CIDR") {
		t.Errorf("error %v, want one that names the node", err)
	}
}

func TestCNIConfig(t *testing.T) {
	got, err := cniConfig(prefixes(t, "10.244.1.0/24", "fd00:10:244:1::/64"), 1450)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"cniVersion":"0.4.0","name":"podnet","plugins":[
		{"type":"ptp","ipMasq":false,"mtu":1450,"ipam":{"type":"host-local","dataDir":"/run/cni-ipam-state",
			"ranges":[[{"subnet":"10.244.1.0/24"}],[{"subnet":"fd00:10:244:1::/64"}]],
			"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}]}},
		{"type":"portmap","capabilities":{"portMappings":true}}]}`
	if normal(t, string(got)) != normal(t, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCNIConfigurationIsWrittenOnceAndWhole(t *testing.T) {
	h := &host{root: t.TempDir()}
	own := prefixes(t, "10.244.1.0/24")
	file := filepath.Join(h.root, cniFile)
	if err := h.writeCNI(own, 0); err != nil {
		t.Fatal(err)
	}
	old := time.Unix(1, 0)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	if err := h.writeCNI(own, 0); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("the unchanged file was written again: %v, %v", info.ModTime(), err)
	}
	if err := h.writeCNI(own, 1400); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files in the CNI folder, want one (%v)", len(entries), err)
	}
	if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), `"mtu": 1400`) {
		t.Errorf("the changed configuration was not written: %s, %v", data, err)
	}
}

// fakeHost records the commands that a node would run, and answers those in answers.
type fakeHost struct {
	ran     []string
	stdin   []string
	answers map[string]string
	fails   map[string]bool
}

func (f *fakeHost) run(_ context.Context, stdin string, argv ...string) (string, error) {
	line := strings.Join(argv, " ")
	f.ran = append(f.ran, line)
	f.stdin = append(f.stdin, stdin)
	if f.fails[line] {
		return "", errors.New("exit status 1")
	}
	return f.answers[line], nil
}

func TestSetRoutesDeletesOnlyItsOwnStaleRoutes(t *testing.T) {
	f := &fakeHost{answers: map[string]string{
		"/usr/bin/ip -4 -json route show proto 237": `[{"dst":"10.244.1.0/24","gateway":"172.18.0.3"},{"dst":"10.244.9.0/24"},{"dst":"10.244.8.1"}]`,
		"/usr/bin/ip -6 -json route show proto 237": "\n",
	}}
	h := &host{run: f.run}
	if err := h.setRoutes(t.Context(), []route{{netip.MustParsePrefix("10.244.1.0/24"), netip.MustParseAddr("172.18.0.3")}}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"/usr/bin/ip -4 route replace 10.244.1.0/24 via 172.18.0.3 proto 237",
		"/usr/bin/ip -4 -json route show proto 237",
		"/usr/bin/ip -4 route del 10.244.9.0/24 proto 237",
		"/usr/bin/ip -4 route del 10.244.8.1/32 proto 237",
		"/usr/bin/ip -6 -json route show proto 237",
	}
	if !slices.Equal(f.ran, want) {
		t.Errorf("ran\n%s\nwant\n%s", strings.Join(f.ran, "\n"), strings.Join(want, "\n"))
	}
}

func TestMasqueradeRulesSpareThePodNetworkOfTheirFamily(t *testing.T) {
	got := masqueradeRules(netip.MustParsePrefix("10.244.1.0/24"), prefixes(t, "10.244.0.0/16", "fd00:10:244::/56"))
	const want = "*nat\n:PODNET-MASQUERADE - [0:0]\n-A PODNET-MASQUERADE -d 10.244.0.0/16 -j RETURN\n-A PODNET-MASQUERADE -j MASQUERADE\nCOMMIT\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestJumpToTheMasqueradeChainIsAddedOnce(t *testing.T) {
	const jump = "POSTROUTING -s 10.244.1.0/24 -m addrtype ! --dst-type LOCAL -m comment --comment podnet: pods to outside -j PODNET-MASQUERADE"
	const check, add = "/usr/sbin/iptables --wait 10 -t nat -C " + jump, "/usr/sbin/iptables --wait 10 -t nat -A " + jump
	for name, missing := range map[string]bool{"it is missing": true, "it is there": false} {
		t.Run(name, func(t *testing.T) {
			f := &fakeHost{fails: map[string]bool{check: missing}}
			if err := (&host{run: f.run}).setMasquerade(t.Context(), prefixes(t, "10.244.1.0/24"), nil); err != nil {
				t.Fatal(err)
			}
			if added := slices.Contains(f.ran, add); added != missing {
				t.Errorf("added: %v, want %v; ran\n%s", added, missing, strings.Join(f.ran, "\n"))
			}
		})
	}
}

func TestSyncWritesTheCNIConfigurationOnlyOnceThePodsCanBeReached(t *testing.T) {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	for _, n := range []*v1.Node{node("a", []string{"10.244.0.0/24"}, []string{"172.18.0.2"}), node("b", []string{"10.244.1.0/24"}, []string{"172.18.0.3"})} {
		if err := store.Add(n); err != nil {
			t.Fatal(err)
		}
	}
	const replace = "/usr/bin/ip -4 route replace 10.244.1.0/24 via 172.18.0.3 proto 237"
	f := &fakeHost{fails: map[string]bool{replace: true}}
	h := &host{root: t.TempDir(), run: f.run}
	pods := prefixes(t, "10.244.0.0/16")
	if err := sync(t.Context(), h, "a", pods, store); err == nil {
		t.Error("no error from a route that could not be set")
	}
	if _, err := os.Stat(filepath.Join(h.root, cniFile)); err == nil {
		t.Error("the node was made Ready without its routes")
	}
	f.fails = nil
	if err := sync(t.Context(), h, "a", pods, store); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(h.root, cniFile)); err != nil {
		t.Error(err)
	}
	if err := sync(t.Context(), h, "c", pods, store); err == nil || !strings.Contains(err.Error(), `no node "c"`) {
		t.Errorf("error %v, want one that names the unknown node", err)
	}
}

func TestLoopTriesAgainAfterAChange(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	changed := make(chan struct{}, 1)
	calls := 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		loop(ctx, changed, func() error {
			if calls++; calls == 2 {
				cancel()
			}
			return nil
		})
	}()
	changed <- struct{}{}
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("loop did not call again within 10s of a change")
	}
}

func TestParseSubnets(t *testing.T) {
	got, err := parseSubnets("10.244.0.0/16, fd00:10:244::/56")
	if err != nil || len(got) != 2 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := parseSubnets(""); err == nil || !strings.Contains(err.Error(), "POD_SUBNET") {
		t.Errorf("error %v, want one that says what to set", err)
	}
}

func prefixes(t testing.TB, list ...string) []netip.Prefix {
	t.Helper()
	got, err := parseSubnets(strings.Join(list, ","))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func normal(t testing.TB, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
