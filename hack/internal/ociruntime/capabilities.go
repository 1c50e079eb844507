package ociruntime

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Capability is one Linux capability, by its number in linux/capability.h.
type Capability uint

// names are the kernel's, by number (linux/capability.h). One that is newer than this
// list is never granted on a bounded host, which is the safe side.
var names = strings.Fields(`
	CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER CAP_FSETID CAP_KILL CAP_SETGID CAP_SETUID
	CAP_SETPCAP CAP_LINUX_IMMUTABLE CAP_NET_BIND_SERVICE CAP_NET_BROADCAST CAP_NET_ADMIN CAP_NET_RAW
	CAP_IPC_LOCK CAP_IPC_OWNER CAP_SYS_MODULE CAP_SYS_RAWIO CAP_SYS_CHROOT CAP_SYS_PTRACE CAP_SYS_PACCT
	CAP_SYS_ADMIN CAP_SYS_BOOT CAP_SYS_NICE CAP_SYS_RESOURCE CAP_SYS_TIME CAP_SYS_TTY_CONFIG CAP_MKNOD
	CAP_LEASE CAP_AUDIT_WRITE CAP_AUDIT_CONTROL CAP_SETFCAP CAP_MAC_OVERRIDE CAP_MAC_ADMIN CAP_SYSLOG
	CAP_WAKE_ALARM CAP_BLOCK_SUSPEND CAP_AUDIT_READ CAP_PERFMON CAP_BPF CAP_CHECKPOINT_RESTORE`)

// String is the capability's name in the kernel's words.
func (c Capability) String() string {
	if int(c) < len(names) {
		return names[c]
	}
	return "CAP_" + strconv.Itoa(int(c))
}

// Set is a set of capabilities, one bit each, as /proc/<pid>/status shows it.
type Set uint64

// Has reports whether the set has the capability of that name, which may lack its
// "CAP_" and be in small letters. It has no capability whose name it does not know.
func (s Set) Has(name string) bool {
	name = strings.ToUpper(name)
	if !strings.HasPrefix(name, "CAP_") {
		name = "CAP_" + name
	}
	i := slices.Index(names, name)
	return i >= 0 && s&(1<<i) != 0
}

// Missing lists the kernel's capabilities, those up to last, that s lacks.
func (s Set) Missing(last Capability) []Capability {
	var missing []Capability
	for c := Capability(0); c <= last; c++ {
		if s&(1<<c) == 0 {
			missing = append(missing, c)
		}
	}
	return missing
}

// BoundingSet reads the bounding set out of the text of a /proc/<pid>/status
// (proc_pid_status(5)).
func BoundingSet(status []byte) (Set, error) {
	for line := range bytes.Lines(status) {
		if value, ok := bytes.CutPrefix(line, []byte("CapBnd:")); ok {
			set, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 16, 64)
			if err != nil {
				return 0, fmt.Errorf("reading the capability bounding set: %w", err)
			}
			return Set(set), nil
		}
	}
	return 0, fmt.Errorf("reading the capability bounding set: no line CapBnd")
}

// LastCapability is the highest capability that the running kernel knows.
func LastCapability() (Capability, error) {
	data, err := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if err != nil {
		return 0, fmt.Errorf("asking the kernel for its last capability: %w", err)
	}
	last, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 6)
	if err != nil {
		return 0, fmt.Errorf("reading the kernel's last capability: %w", err)
	}
	return Capability(last), nil
}
