package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/sync/errgroup"
)

// proofPods are a server on one node and a client on the other. The server tells each
// client its address.
const proofPods = `apiVersion: v1
kind: Pod
metadata:
  name: server
  labels:
    app: server
spec:
  nodeName: ` + proofCluster + `-worker
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
  nodeName: ` + proofCluster + `-control-plane
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

// podToPod asks the server's pod from the client's, across nodes.
func (p *proof) podToPod(ctx context.Context) (string, error) {
	// Creating a pod needs its namespace's service account, which comes a moment after
	// the namespace.
	err := eventually(ctx, answerTime, func() error {
		return p.kubectl(ctx, "apply", "--filename=-").Stdin(strings.NewReader(proofPods)).Run()
	})
	if err != nil {
		return "", err
	}
	if err := p.kubectl(ctx, "wait", "--for=condition=Ready", "pods/server", "pods/client", "--timeout="+answerTime.String()).Run(); err != nil {
		return "", err
	}
	server, client, err := p.podIPs(ctx)
	if err != nil {
		return "", err
	}
	seen, err := p.ask(ctx, server, "8080")
	if err != nil {
		return "", err
	}
	if !sameAddress(seen, client) {
		return "", fmt.Errorf("the server at %s saw the client come from %s, want its own address %s", server, seen, client)
	}
	return fmt.Sprintf("%s on the control plane asked %s on the worker, which saw %s", client, server, seen), nil
}

func (p *proof) podIPs(ctx context.Context) (server, client string, err error) {
	out, err := p.kubectl(ctx, "get", "pods", "server", "client", "--output=jsonpath={.items[*].status.podIP}").Output()
	if err != nil {
		return "", "", err
	}
	ips := strings.Fields(out)
	if len(ips) != 2 {
		return "", "", fmt.Errorf("want the addresses of two pods, got %q", out)
	}
	return ips[0], ips[1], nil
}

func (p *proof) dns(ctx context.Context) (string, error) {
	seen, err := p.ask(ctx, "server.default.svc.cluster.local", "80")
	if err != nil {
		return "", err
	}
	resolved, err := p.fromClient(ctx, "nslookup", "server.default.svc.cluster.local")
	return fmt.Sprintf("the server saw %s\n%s", seen, resolved), err
}

func (p *proof) logs(ctx context.Context) (string, error) {
	return p.expect("the server starts")(p.kubectl(ctx, "logs", "server").Output())
}

func (p *proof) exec(ctx context.Context) (string, error) {
	return p.expect("client")(p.fromClient(ctx, "hostname"))
}

func (p *proof) expect(want string) func(string, error) (string, error) {
	return func(got string, err error) (string, error) {
		if err == nil && got != want {
			err = fmt.Errorf("got %q, want %q", got, want)
		}
		return got, err
	}
}

// outside listens on this machine's end of kind's network, which knows no way to a
// pod, and has the client connect to it.
func (p *proof) outside(ctx context.Context) (string, error) {
	gateway, err := p.address(ctx, "{{.NetworkSettings.Networks.kind.Gateway}}")
	if err != nil {
		return "", err
	}
	node, err := p.address(ctx, "{{.NetworkSettings.Networks.kind.IPAddress}}")
	if err != nil {
		return "", err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(gateway, "0"))
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
	_, err = p.fromClient(ctx, "nc", "-w", "5", gateway, port)
	listener.Close() // ends Accept, should nobody have come
	if accepted := g.Wait(); accepted != nil || err != nil {
		return "", fmt.Errorf("the client's connection to %s: %w", listener.Addr(), errors.Join(err, accepted))
	}
	if !sameAddress(seen, node) {
		return "", fmt.Errorf("%s saw the client come from %s, want its node's address %s", gateway, seen, node)
	}
	return fmt.Sprintf("%s saw %s", gateway, seen), nil
}

// address asks the engine about the control plane's container.
func (p *proof) address(ctx context.Context, format string) (string, error) {
	return p.engine.Docker(ctx, "inspect", "--format", format, p.node("control-plane")).Output()
}

// ask has the client ask the server at host, and returns the address that the server
// saw it come from. It speaks HTTP by hand: busybox' wget, linked statically, may
// crash in the C library's resolver.
func (p *proof) ask(ctx context.Context, host, port string) (string, error) {
	const request = `printf 'GET /cgi-bin/address HTTP/1.0\r\n\r\n' | nc -w 10 "$0" "$1"`
	answer, err := p.fromClient(ctx, "sh", "-c", request, host, port)
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
func (p *proof) fromClient(ctx context.Context, argv ...string) (string, error) {
	return p.kubectl(ctx, append([]string{"exec", "client", "--"}, argv...)...).Output()
}

// sameAddress compares two spellings of addresses: a server that listens on both
// families sees ::ffff:10.244.0.5 for 10.244.0.5.
func sameAddress(a, b string) bool {
	x, err := netip.ParseAddr(strings.Trim(a, "[]"))
	if err != nil {
		return false
	}
	y, err := netip.ParseAddr(b)
	return err == nil && x.Unmap() == y.Unmap()
}
