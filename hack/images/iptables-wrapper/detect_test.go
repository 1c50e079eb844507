package main

import (
	"os"
	"path/filepath"
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
		sure  bool
	}{
		{name: "no rules at all: nft, and look again next time", mode: "nft"},
		{
			name:  "the hint in nft decides, however many legacy rules there are",
			saved: map[string]string{"nft iptables mangle": hintChain, "legacy iptables ": rules(9)},
			mode:  "nft", sure: true,
		},
		{
			name:  "the hint in legacy decides, however many nft rules there are",
			saved: map[string]string{"legacy iptables mangle": hintChain, "nft iptables ": rules(9)},
			mode:  "legacy", sure: true,
		},
		{
			name:  "an older kubelet's canary counts as a hint",
			saved: map[string]string{"legacy iptables mangle": canaryChain},
			mode:  "legacy", sure: true,
		},
		{
			name:  "an IPv6-only node has its hint in ip6tables",
			saved: map[string]string{"legacy ip6tables mangle": hintChain},
			mode:  "legacy", sure: true,
		},
		{
			name:  "a rule that only mentions the chain is no hint",
			saved: map[string]string{"legacy iptables mangle": "-A X -m comment --comment :KUBE-IPTABLES-HINT \n"},
			mode:  "nft",
		},
		{
			name:  "without a hint, more legacy rules decide, unsurely",
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
			mode, sure := detect(func(mode, family, table string) []byte {
				return []byte(tc.saved[mode+" "+family+" "+table])
			})
			if mode != tc.mode || sure != tc.sure {
				t.Errorf("detect = %s, %v; want %s, %v", mode, sure, tc.mode, tc.sure)
			}
		})
	}
}

func TestCurrentModeRemembersOnlyWhatIsSure(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mode")
	hinted := false
	calls := 0
	saved := func(mode, family, table string) []byte {
		calls++
		if hinted && mode == "legacy" && table == "mangle" {
			return []byte(":KUBE-IPTABLES-HINT - [0:0]\n")
		}
		return nil
	}
	expect := func(want string) {
		t.Helper()
		if got, err := currentMode(file, saved); err != nil || got != want {
			t.Fatalf("currentMode = %q, %v; want %q", got, err, want)
		}
	}

	expect("nft")
	hinted = true
	expect("legacy")
	calls = 0
	expect("legacy")
	if calls != 0 {
		t.Errorf("looked at the rules %d times although the mode was remembered", calls)
	}
	if err := os.WriteFile(file, []byte("nonsense"), 0o644); err != nil {
		t.Fatal(err)
	}
	expect("legacy")
}
