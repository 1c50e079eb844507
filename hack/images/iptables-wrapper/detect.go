package main

import (
	"bytes"
	"regexp"
)

// saver returns rules in the format of iptables-save.
type saver func(mode, family, table string) []byte

// hint matches the declaration of a chain that the kubelet creates in the mangle table.
var hint = regexp.MustCompile(`(?m)^:(KUBE-IPTABLES-HINT|KUBE-KUBELET-CANARY) `)

// detect returns the mode of the node. It is sure if the kubelet has left a hint. Otherwise it
// returns the mode with more rules.
func detect(save saver) (mode string, sure bool) {
	families := []string{"iptables", "ip6tables"}
	for _, mode := range []string{"nft", "legacy"} {
		for _, family := range families {
			if hint.Match(save(mode, family, "mangle")) {
				return mode, true
			}
		}
	}
	rules := map[string]int{}
	for _, mode := range []string{"nft", "legacy"} {
		for _, family := range families {
			for line := range bytes.Lines(save(mode, family, "")) {
				if bytes.HasPrefix(line, []byte("-")) {
					rules[mode]++
				}
			}
		}
	}
	if rules["legacy"] > rules["nft"] {
		return "legacy", false
	}
	return "nft", false
}
