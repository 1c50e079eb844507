package main

import (
	"strings"
	"testing"
)

func TestDetect(t *testing.T) {
	const hintChain = "*mangle\n:PREROUTING ACCEPT [0:0]\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n"
	const canaryChain = "*mangle\n:KUBE-KUBELET-CANARY - [0:0]\nCOMMIT\n"
	rules := func(n int) string { return "*filter\n" + strings.Repeat("-A INPUT -j ACCEPT\n", n) + "COMMIT\n" }

	for _, tc := range []struct {
		name  string
		saved map[string]string // "mode family table" -> what iptables-save prints
		mode  string
	}{
		{name: "no rules at all: nft", mode: "nft"},
		{
			name:  "the hint in nft decides, however many legacy rules there are",
			saved: map[string]string{"nft iptables mangle": hintChain, "legacy iptables ": rules(9)},
			mode:  "nft",
		},
		{
			name:  "the hint in legacy decides, however many nft rules there are",
			saved: map[string]string{"legacy iptables mangle": hintChain, "nft iptables ": rules(9)},
			mode:  "legacy",
		},
		{
			name:  "an older kubelet's canary counts as a hint",
			saved: map[string]string{"legacy iptables mangle": canaryChain},
			mode:  "legacy",
		},
		{
			name:  "an IPv6-only node has its hint in ip6tables",
			saved: map[string]string{"legacy ip6tables mangle": hintChain},
			mode:  "legacy",
		},
		{
			name:  "a rule that only mentions the chain is no hint",
			saved: map[string]string{"legacy iptables mangle": "-A X -m comment --comment :KUBE-IPTABLES-HINT \n"},
			mode:  "nft",
		},
		{
			name:  "without a hint, more legacy rules decide",
			saved: map[string]string{"legacy iptables ": rules(2), "nft iptables ": rules(1)},
			mode:  "legacy",
		},
		{
			name:  "without a hint, as many rules in both mean nft",
			saved: map[string]string{"legacy ip6tables ": rules(2), "nft iptables ": rules(2)},
			mode:  "nft",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mode := detect(func(mode, family, table string) []byte {
				return []byte(tc.saved[mode+" "+family+" "+table])
			})
			if mode != tc.mode {
				t.Errorf("detect = %s, want %s", mode, tc.mode)
			}
		})
	}
}
