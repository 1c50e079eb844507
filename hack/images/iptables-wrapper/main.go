// Command iptables-wrapper replaces iptables, ip6tables and their -save and -restore in the
// kube-proxy image. The kernel keeps two sets of rules, those of nf_tables and the legacy ones,
// and kube-proxy must write to the set that the node's kubelet uses. The wrapper finds the set
// with the chain that the kubelet leaves as a hint (KEP-3178), and runs Debian's iptables for it.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
)

// modeFile stores the mode once a hint was found, until the container ends.
const modeFile = "/run/iptables-mode"

func main() {
	mode, err := currentMode(modeFile, save)
	if err != nil {
		fmt.Fprintln(os.Stderr, "iptables-wrapper:", err)
		os.Exit(1)
	}
	program := multiCall(mode)
	// The multi-call program acts as the command in argv[0].
	os.Args[0] = filepath.Base(os.Args[0])
	err = syscall.Exec(program, os.Args, os.Environ())
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

// currentMode returns the mode in file. If the file has none, it detects the mode.
func currentMode(file string, save saver) (string, error) {
	if data, err := os.ReadFile(file); err == nil && known(string(data)) {
		return string(data), nil
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	mode, sure := detect(save)
	if sure {
		// Renamed once it is complete, because wrappers may run at the same time. If it cannot be
		// written, the next call detects the mode again.
		temp := fmt.Sprintf("%s.%d", file, os.Getpid())
		if os.WriteFile(temp, []byte(mode), 0o644) != nil || os.Rename(temp, file) != nil {
			os.Remove(temp) //nolint:errcheck // it may not exist
		}
	}
	return mode, nil
}

func known(mode string) bool { return mode == "nft" || mode == "legacy" }

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
