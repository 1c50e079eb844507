// Command iptables-wrapper stands for iptables, ip6tables and their -save and -restore
// in the kube-proxy image. The kernel keeps two sets of rules, those of nf_tables and
// the legacy ones, and kube-proxy must write to the set that the node's kubelet uses.
// So it looks which set holds the chain that the kubelet leaves as a hint (KEP-3178),
// and runs Debian's iptables for that set.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// decision remembers the mode, once a hint was found, until the container ends.
const decision = "/run/iptables-mode"

func main() {
	mode, err := chosen(decision, save)
	if err != nil {
		fmt.Fprintln(os.Stderr, "iptables-wrapper:", err)
		os.Exit(1)
	}
	program := multi(mode)
	// The multi-call program goes by the name under which it is called.
	os.Args[0] = filepath.Base(os.Args[0])
	err = syscall.Exec(program, os.Args, os.Environ())
	fmt.Fprintf(os.Stderr, "iptables-wrapper: %s: %v\n", program, err)
	os.Exit(1)
}

func multi(mode string) string { return "/usr/sbin/xtables-" + mode + "-multi" }

// save returns the rules that mode has for family ("iptables" or "ip6tables"), of one
// table or of all. A kernel without that mode has none.
func save(mode, family, table string) []byte {
	args := []string{family + "-save"}
	if table != "" {
		args = append(args, "-t", table)
	}
	out, err := exec.Command(multi(mode), args...).Output()
	if err != nil {
		return nil
	}
	return out
}

// chosen returns the mode that the file remembered names, or else finds it.
func chosen(remembered string, save saver) (string, error) {
	if data, err := os.ReadFile(remembered); err == nil && known(string(data)) {
		return string(data), nil
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	mode, sure := detect(save)
	if sure {
		// Written beside and renamed: several of us may run at once. Where it cannot be
		// written, the next call looks again.
		beside := fmt.Sprintf("%s.%d", remembered, os.Getpid())
		if os.WriteFile(beside, []byte(mode), 0o644) != nil || os.Rename(beside, remembered) != nil {
			os.Remove(beside) //nolint:errcheck // it may not exist
		}
	}
	return mode, nil
}

func known(mode string) bool { return mode == "nft" || mode == "legacy" }
