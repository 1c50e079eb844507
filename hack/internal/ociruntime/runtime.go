package ociruntime

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// runtime is the one that does the work.
const runtime = "runc"

// Exec bounds what args, a command line without the program's name, asks for and
// replaces this process by runc with the same arguments. It returns only errors.
func Exec(args []string) error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	allowed, err := BoundingSet(status)
	if err != nil {
		return err
	}
	if err := ParseArgs(args).Bound(allowed); err != nil {
		return fmt.Errorf("leaving capabilities out that this host cannot grant: %w", err)
	}
	path, err := exec.LookPath(runtime)
	if err != nil {
		return fmt.Errorf("%w; install runc", err)
	}
	err = syscall.Exec(path, append([]string{runtime}, args...), os.Environ())
	return fmt.Errorf("executing %s: %w", path, err)
}

// Bound rewrites the request's file, if it has one, to what allowed can grant.
func (r Request) Bound(allowed Set) error {
	switch {
	case r.Config != "":
		return rewrite(r.Config, allowed, BoundConfig)
	case r.Process != "":
		return rewrite(r.Process, allowed, BoundProcess)
	}
	return nil
}
