package ociruntime

import (
	"path/filepath"
	"strings"
)

// Request is what one command line asks of the runtime, as far as it tells which
// file says what the capabilities of a process shall be.
type Request struct {
	// Config is the bundle's config.json, for create and run.
	Config string
	// Process is the process.json of exec, where one is given.
	Process string
}

// Flags of runc that take a value in the next argument where it is not in the
// same one ("--root DIR", "--root=DIR"). Every other flag is a switch.
var (
	globalValues  = words("log log-format root criu rootless")
	commandValues = map[string]map[string]bool{
		"create": words("bundle b console-socket pid-file preserve-fds"),
		"run":    words("bundle b console-socket pid-file preserve-fds"),
		"exec": words("console-socket cwd env e user u additional-gids g process p pid-file " +
			"process-label apparmor cap c preserve-fds cgroup"),
	}
)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(list) {
		set[word] = true
	}
	return set
}

// ParseArgs reads a command line of the OCI runtime command line interface as runc
// understands it, without the program's name: global flags, a command, its flags,
// a container. The request is empty for every command that starts no process.
func ParseArgs(args []string) Request {
	_, rest := parseFlags(args, globalValues)
	if len(rest) == 0 {
		return Request{}
	}
	command := rest[0]
	values, ok := commandValues[command]
	if !ok {
		return Request{}
	}
	flags, _ := parseFlags(rest[1:], values)
	if command == "exec" {
		return Request{Process: last(flags, "process", "p")}
	}
	return Request{Config: filepath.Join(last(flags, "bundle", "b"), "config.json")}
}

type flag struct{ name, value string }

// parseFlags takes the leading flags off args. One dash and two mean the same.
func parseFlags(args []string, takesValue map[string]bool) (flags []flag, rest []string) {
	for len(args) > 0 {
		arg := args[0]
		if len(arg) < 2 || arg[0] != '-' {
			return flags, args
		}
		args = args[1:]
		if arg == "--" {
			return flags, args
		}
		name, value, inSame := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
		if !inSame && takesValue[name] && len(args) > 0 {
			value, args = args[0], args[1:]
		}
		flags = append(flags, flag{name, value})
	}
	return flags, nil
}

// last is the value of the last of flags that has one of names.
func last(flags []flag, names ...string) string {
	value := ""
	for _, f := range flags {
		for _, name := range names {
			if f.name == name {
				value = f.value
			}
		}
	}
	return value
}
