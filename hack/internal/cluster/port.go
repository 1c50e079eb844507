package cluster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"syscall"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/remedy"
)

const (
	// apiServerAddress is the host address on which kind publishes an API server's port.
	apiServerAddress = "127.0.0.1"
	portMax          = math.MaxUint16
)

// CheckPort returns the error that Create would return for an API server's port, before
// anything is built: the port is invalid, or another process listens there. In the latter case
// remedy.ErrPortInUse is in the chain. The nodes of the cluster called name may hold the port.
func CheckPort(ctx context.Context, name string, port int) error {
	if err := validatePort(port); err != nil {
		return err
	}
	inUse := checkPortFree(port)
	if inUse == nil {
		return nil
	}
	e, err := engine.Find(ctx)
	if err != nil {
		return inUse // without an engine there are no nodes
	}
	nodes, err := docker(e.Docker).containers(ctx, name)
	if err != nil || len(nodes) > 0 {
		return nil // Create decides
	}
	return inUse
}

func validatePort(port int) error {
	if port < 0 || port > portMax {
		return fmt.Errorf("the API server cannot listen on port %d: name one up to %d, or 0 for any that is free", port, portMax)
	}
	return nil
}

// checkPortFree returns an error if a process listens on the port. Port 0 is always free.
func checkPortFree(port int) error {
	address := net.JoinHostPort(apiServerAddress, strconv.Itoa(port))
	listener, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return remedy.New(
			fmt.Errorf("%w: something listens on %s, the address for the API server", remedy.ErrPortInUse, address),
			"see what with `ss -ltnp`, and stop it, or choose another port with --api-server-port",
		)
	case err != nil:
		return nil // the engine, which runs as root, may be allowed to listen there
	}
	return listener.Close()
}
