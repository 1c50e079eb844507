package proof

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/sync/errgroup"

	"podenv.dev/hack/internal/poll"
)

// kindPods are a server on one node and a client on the other. The server returns the address of
// the client.
var kindPods = `apiVersion: v1
kind: Pod
metadata:
  name: server
  labels:
    app: server
spec:
  nodeName: ` + kindCluster + `-worker
  terminationGracePeriodSeconds: 0
  containers:
  - name: server
    image: podenv.dev/busybox:1
    imagePullPolicy: Never
    command:
    - sh
    - -c
    - |
      mkdir -p /www/cgi-bin
      printf '#!/bin/sh\necho\necho "$REMOTE_ADDR"\n' >/www/cgi-bin/address
      chmod +x /www/cgi-bin/address
      echo the server starts
      exec httpd -f -p 8080 -h /www
    readinessProbe:
      tcpSocket:
        port: 8080
      periodSeconds: 1
---
apiVersion: v1
kind: Pod
metadata:
  name: client
spec:
  nodeName: ` + kindCluster + `-control-plane
  terminationGracePeriodSeconds: 0
  tolerations:
  - operator: Exists
  containers:
  - name: client
    image: podenv.dev/busybox:1
    imagePullPolicy: Never
    command: [sleep, infinity]
---
apiVersion: v1
kind: Service
metadata:
  name: server
spec:
  selector:
    app: server
  ports:
  - port: 80
    targetPort: 8080
`

// podToPod sends a request from the client's pod to the server's, across nodes.
func (k *kindProof) podToPod() (string, error) {
	// A pod needs the service account of its namespace, which is created a moment after the
	// namespace.
	err := poll.Until(k.ctx, requestTimeout, func(context.Context) error {
		return k.kubectl("apply", "--filename=-").Stdin(strings.NewReader(kindPods)).Run()
	})
	if err != nil {
		return "", err
	}
	if err := k.kubectl("wait", "--for=condition=Ready", "pods/server", "pods/client", "--timeout="+requestTimeout.String()).Run(); err != nil {
		return "", err
	}
	server, client, err := k.podIPs()
	if err != nil {
		return "", err
	}
	seen, err := k.request(server, "8080")
	if err != nil {
		return "", err
	}
	if !sameAddress(seen, client) {
		return "", fmt.Errorf("the server at %s saw the client come from %s, want its own address %s", server, seen, client)
	}
	return fmt.Sprintf("%s on the control plane asked %s on the worker, which saw %s", client, server, seen), nil
}

func (k *kindProof) podIPs() (server, client string, err error) {
	out, err := k.kubectl("get", "pods", "server", "client", "--output=jsonpath={.items[*].status.podIP}").Output()
	if err != nil {
		return "", "", err
	}
	ips := strings.Fields(out)
	if len(ips) != 2 {
		return "", "", fmt.Errorf("want the addresses of two pods, got %q", out)
	}
	return ips[0], ips[1], nil
}

func (k *kindProof) dns() (string, error) {
	seen, err := k.request("server.default.svc.cluster.local", "80")
	if err != nil {
		return "", err
	}
	resolved, err := k.fromClient("nslookup", "server.default.svc.cluster.local")
	return fmt.Sprintf("the server saw %s\n%s", seen, resolved), err
}

func (k *kindProof) logs() (string, error) {
	return expect("the server starts")(k.kubectl("logs", "server").Output())
}

func (k *kindProof) exec() (string, error) {
	return expect("client")(k.fromClient("hostname"))
}

func expect(want string) func(string, error) (string, error) {
	return func(got string, err error) (string, error) {
		if err == nil && got != want {
			err = fmt.Errorf("got %q, want %q", got, want)
		}
		return got, err
	}
}

// egress listens on this host's address in the cluster's network, where no route to pods exists, and
// has the client connect to it.
func (k *kindProof) egress() (string, error) {
	gateway, err := k.address("{{(index .NetworkSettings.Networks `" + kindNetwork + "`).Gateway}}")
	if err != nil {
		return "", err
	}
	node, err := k.address("{{(index .NetworkSettings.Networks `" + kindNetwork + "`).IPAddress}}")
	if err != nil {
		return "", err
	}
	var config net.ListenConfig
	listener, err := config.Listen(k.ctx, "tcp", net.JoinHostPort(gateway, "0"))
	if err != nil {
		return "", err
	}
	defer listener.Close()
	var seen string
	var g errgroup.Group
	g.Go(func() error {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		seen, _, err = net.SplitHostPort(conn.RemoteAddr().String())
		conn.Close()
		return err
	})
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return "", err
	}
	_, err = k.fromClient("nc", "-w", "5", gateway, port)
	listener.Close() // ends Accept if there was no connection
	if accepted := g.Wait(); accepted != nil || err != nil {
		return "", fmt.Errorf("the client's connection to %s: %w", listener.Addr(), errors.Join(err, accepted))
	}
	if !sameAddress(seen, node) {
		return "", fmt.Errorf("%s saw the client come from %s, want its node's address %s", gateway, seen, node)
	}
	return fmt.Sprintf("%s saw %s", gateway, seen), nil
}

// address inspects the container of the control plane.
func (k *kindProof) address(format string) (string, error) {
	return k.docker("inspect", "--format", format, k.node("control-plane")).Output()
}

// request sends a request from the client to the server at host, and returns the client's address as
// the server saw it. It does not use busybox' wget, which is linked statically and may crash in
// the C library's resolver.
func (k *kindProof) request(host, port string) (string, error) {
	const script = `printf 'GET /cgi-bin/address HTTP/1.0\r\n\r\n' | nc -w 10 "$0" "$1"`
	answer, err := k.fromClient("sh", "-c", script, host, port)
	if err != nil {
		return "", fmt.Errorf("the client asks %s port %s: %w", host, port, err)
	}
	_, body, ok := strings.Cut(strings.ReplaceAll(answer, "\r", ""), "\n\n")
	if !ok {
		return "", fmt.Errorf("the client asks %s port %s: no HTTP response in %q", host, port, answer)
	}
	return strings.TrimSpace(body), nil
}

// fromClient runs a command in the client's container.
func (k *kindProof) fromClient(argv ...string) (string, error) {
	return k.kubectl(append([]string{"exec", "client", "--"}, argv...)...).Output()
}

// sameAddress reports whether a and b are the same address: a server that listens on both families
// sees ::ffff:10.244.0.5 for 10.244.0.5.
func sameAddress(a, b string) bool {
	x, err := netip.ParseAddr(strings.Trim(a, "[]"))
	if err != nil {
		return false
	}
	y, err := netip.ParseAddr(b)
	return err == nil && x.Unmap() == y.Unmap()
}
