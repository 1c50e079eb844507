// Package images names the images of test pods. They are in no registry: podenv loads them onto the nodes
// of its clusters, and the user onto the nodes of other clusters.
package images

const (
	// Busybox has a shell and the usual tools, from Debian's busybox-static. It runs as root unless told
	// otherwise.
	Busybox = "podenv.dev/busybox:1"
	// Envdump has one static program and nothing else, no shell in particular. It prints its environment as
	// JSON; `envdump serve` then waits for SIGTERM.
	Envdump = "podenv.dev/envdump:1"
	// EnvdumpNonroot is Envdump run as user 65532, which the image sets as a number.
	EnvdumpNonroot = "podenv.dev/envdump-nonroot:1"
	// EnvdumpGroup is Envdump run as user 1000 and group 2000, both set as numbers.
	EnvdumpGroup = "podenv.dev/envdump-group:1"
	// EnvdumpNamed is Envdump run as the user nobody, 65534, which only the image's /etc/passwd defines.
	EnvdumpNamed = "podenv.dev/envdump-named:1"
)

// All are all of them.
var All = []string{Busybox, Envdump, EnvdumpNonroot, EnvdumpGroup, EnvdumpNamed}
