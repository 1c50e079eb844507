// Command podenv-oci-runtime is runc for hosts that cannot grant every capability:
// dockerd is given it as its default runtime there. See package ociruntime.
package main

import (
	"fmt"
	"os"

	"podenv.dev/hack/internal/ociruntime"
)

func main() {
	// Exec does not return unless it fails; containerd shows what is said here.
	fmt.Fprintf(os.Stderr, "podenv-oci-runtime: %v\n", ociruntime.Exec(os.Args[1:]))
	os.Exit(1)
}
