// Command balancer is the load balancer of a cluster with several control planes. kind runs it in place
// of Envoy, whose configuration it reads: the listener in lds.yaml, and the API servers in cds.yaml, beside
// the file that -c names. kind replaces them while it runs.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	interval = 250 * time.Millisecond // between two readings of the files, and between two checks
	timeout  = 700 * time.Millisecond // of a check, and of a connection
	patience = 3                      // how many checks without an answer end a server's connections
)

func main() {
	file := flag.String("c", "/home/envoy/envoy.yaml", "Envoy's configuration")
	flag.Parse()
	// With an error, kind's shell starts it again.
	log.Fatal(run(context.Background(), filepath.Dir(*file)))
}

// socketAddress matches a SocketAddress of Envoy as kind writes it.
var socketAddress = regexp.MustCompile(`socket_address:\s+address: "?([^"\s]+)"?\s+port_value: (\d+)`)

// addresses returns every SocketAddress in a file.
func addresses(file string) (found []string, err error) {
	data, err := os.ReadFile(file)
	for _, m := range socketAddress.FindAllSubmatch(data, -1) {
		found = append(found, net.JoinHostPort(string(m[1]), string(m[2])))
	}
	return found, err
}

// run follows the files in dir until ctx ends. A file that cannot be read, or has no address, changes nothing.
func run(ctx context.Context, dir string) error {
	var b balancer
	var l net.Listener
	for ; ctx.Err() == nil; pause(ctx) {
		listen, err := addresses(filepath.Join(dir, "lds.yaml"))
		servers, errServers := addresses(filepath.Join(dir, "cds.yaml"))
		if err != nil || errServers != nil {
			log.Print(err, errServers)
			continue
		}
		if len(listen) == 0 || len(servers) == 0 { // kind starts with empty files
			continue
		}
		b.follow(ctx, servers)
		if l != nil {
			continue
		}
		if l, err = net.Listen("tcp", listen[0]); err != nil {
			return err
		}
		defer l.Close()
		go b.serve(l)
	}
	return ctx.Err()
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(interval):
	}
}

// balancer has the API servers, by address.
type balancer struct {
	mu      sync.Mutex
	servers map[string]*server
	next    int
}

type server struct {
	address string
	ready   atomic.Bool
	ctx     context.Context // of the checks and the connections
	end     context.CancelFunc
}

// follow makes addresses the servers, and replaces those that have ended.
func (b *balancer) follow(ctx context.Context, addresses []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	servers := map[string]*server{}
	for _, address := range addresses {
		if s := b.servers[address]; s != nil && s.ctx.Err() == nil {
			servers[address] = s
			continue
		}
		s := &server{address: address}
		s.ctx, s.end = context.WithCancel(ctx)
		servers[address] = s
		go s.check()
	}
	for address, s := range b.servers {
		if servers[address] != s {
			s.end()
		}
	}
	b.servers = servers
}

// check keeps up whether s is ready. It ends s if s does not answer: its clients would wait for their own
// timeouts.
func (s *server) check() {
	client := &http.Client{Timeout: timeout, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // as kind tells Envoy
	}}
	for silent := 0; s.ctx.Err() == nil; pause(s.ctx) {
		response, err := client.Get("https://" + s.address + "/readyz")
		if err == nil {
			response.Body.Close()
			silent = 0
		} else if silent++; silent == patience {
			s.end()
		}
		ready := err == nil && response.StatusCode < http.StatusInternalServerError
		if s.ready.Swap(ready) != ready {
			log.Printf("%s is ready: %t (%v)", s.address, ready, err)
		}
	}
}

// order returns the servers in the order to try: in turn, those that are ready first.
func (b *balancer) order() (ready []*server) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var others []*server
	names := slices.Sorted(maps.Keys(b.servers))
	b.next++
	for i := range names {
		if s := b.servers[names[(i+b.next)%len(names)]]; s.ready.Load() {
			ready = append(ready, s)
		} else {
			others = append(others, s)
		}
	}
	return append(ready, others...)
}

// serve proxies each connection of l to the first server that takes it, until l is closed.
func (b *balancer) serve(l net.Listener) {
	for {
		client, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many open files: the connection waits until there are fewer
			log.Print(err)
			time.Sleep(interval)
			continue
		}
		go func() {
			defer client.Close()
			for _, s := range b.order() {
				upstream, err := (&net.Dialer{Timeout: timeout}).DialContext(s.ctx, "tcp", s.address)
				if err != nil {
					continue
				}
				// The end of either side, or of the server, ends both.
				shut := func() { client.Close(); upstream.Close() }
				defer context.AfterFunc(s.ctx, shut)()
				go func() {
					io.Copy(client, upstream) //nolint:errcheck // either side may end it
					shut()
				}()
				io.Copy(upstream, client) //nolint:errcheck // either side may end it
				shut()
				return
			}
			log.Print("no API server takes connections")
		}()
	}
}
