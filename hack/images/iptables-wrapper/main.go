// Command iptables-wrapper replaces iptables, ip6tables and their -save and -restore in the
// kube-proxy image. The kernel keeps two sets of rules, those of nf_tables and the legacy ones,
// and kube-proxy must write to the set that the node's kubelet uses. The wrapper finds the set
// with the chain that the kubelet leaves as a hint (KEP-3178), and runs Debian's iptables for it.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
)

func main() {
	program := multiCall(detect(save))
	// The multi-call program acts as the command in argv[0].
	os.Args[0] = filepath.Base(os.Args[0])
	err := syscall.Exec(program, os.Args, os.Environ())
	fmt.Fprintf(os.Stderr, "iptables-wrapper: %s: %v\n", program, err)
	os.Exit(1)
}

func multiCall(mode string) string { return "/usr/sbin/xtables-" + mode + "-multi" }

// save returns the rules of a mode for family ("iptables" or "ip6tables"), of one table or of
// all. A kernel without that mode has none.
func save(mode, family, table string) []byte {
	args := []string{family + "-save"}
	if table != "" {
		args = append(args, "-t", table)
	}
	out, err := exec.Command(multiCall(mode), args...).Output()
	if err != nil {
		return nil
	}
	return out
}

// hint matches the declaration of a chain that the kubelet creates in the mangle table.
var hint = regexp.MustCompile(`(?m)^:(KUBE-IPTABLES-HINT|KUBE-KUBELET-CANARY) `)

// detect returns the mode of the node: the one in which the kubelet has left a hint, otherwise the
// one with more rules.
func detect(save func(mode, family, table string) []byte) string {
	families := []string{"iptables", "ip6tables"}
	for _, mode := range []string{"nft", "legacy"} {
		for _, family := range families {
			if hint.Match(save(mode, family, "mangle")) {
				return mode
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
		return "legacy"
	}
	return "nft"
}
