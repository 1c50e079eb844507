package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/remedy"
)

const (
	// apiServerAddress is where kind publishes the port of an API server.
	apiServerAddress = "127.0.0.1"
	portMax          = 1<<16 - 1
)

// CheckPort says, before anything is built, what Create would say of an API server's
// port: that it is none, or that another process listens there, in which case
// remedy.ErrPortInUse is in the error's chain. Nodes that the cluster called name has
// already may hold it.
func CheckPort(ctx context.Context, name string, port int) error {
	if err := validatePort(port); err != nil {
		return err
	}
	taken := portFree(port)
	if taken == nil {
		return nil
	}
	e, err := engine.Find(ctx)
	if err != nil {
		return taken // without an engine there are no nodes
	}
	nodes, err := docker(e.Docker).containers(ctx, name)
	if err != nil || len(nodes) > 0 {
		return nil // Create sees more
	}
	return taken
}

func validatePort(port int) error {
	if port < 0 || port > portMax {
		return fmt.Errorf("the API server cannot listen on port %d: name one up to %d, or 0 for any that is free", port, portMax)
	}
	return nil
}

// portFree returns an error if something listens on the port; 0 is always free.
func portFree(port int) error {
	address := net.JoinHostPort(apiServerAddress, strconv.Itoa(port))
	listener, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return remedy.New(
			fmt.Errorf("%w: something listens on %s, where the API server was to be", remedy.ErrPortInUse, address),
			"see what with `ss -ltnp`, and stop it, or choose another port with --api-server-port",
		)
	case err != nil:
		return nil // the engine, which runs as root, may be allowed to
	}
	return listener.Close()
}
