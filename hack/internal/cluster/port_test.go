package cluster

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"podenv.dev/hack/internal/remedy"
)

// takenPort returns a port on which this process listens until the test ends.
func takenPort(t *testing.T) int {
	t.Helper()
	listener := listen(t)
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().(*net.TCPAddr).Port
}

// freePort returns a port that was free a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	listener := listen(t)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(apiServerAddress, "0"))
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

func TestCheckPort(t *testing.T) {
	taken := takenPort(t)
	tests := map[string]struct {
		port  int
		nodes bool // the cluster has some already
		down  bool // no engine runs
		says  string
		is    error
	}{
		"none asked for":                     {port: 0},
		"a free one":                         {port: freePort(t)},
		"one that is taken":                  {port: taken, is: remedy.ErrPortInUse, says: "--api-server-port"},
		"one that the cluster's nodes have":  {port: taken, nodes: true},
		"one that is taken, and no engine":   {port: taken, down: true, is: remedy.ErrPortInUse, says: "--api-server-port"},
		"a negative one":                     {port: -1, says: "port -1"},
		"one beyond the last":                {port: 65536, says: "up to 65535"},
		"one beyond the last, with nodes up": {port: 65536, nodes: true, says: "up to 65535"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, _, _ := newFakeDocker(t)
			if test.nodes {
				f.add(t, fakeNode("podenv", "podenv-control-plane", "control-plane", true))
			}
			if test.down {
				f.write(t, "fail/info", "Cannot connect to the Docker daemon")
			}
			err := CheckPort(t.Context(), "podenv", test.port)
			if wants := test.says != ""; wants != (err != nil) {
				t.Fatalf("CheckPort: %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("CheckPort does not say %q: %v", test.says, err)
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("error %v is not %v", err, test.is)
			}
		})
	}
}

func TestAClusterIsNotDeletedIfItsNewPortIsInUse(t *testing.T) {
	f, l, e := newFakeDocker(t)
	f.addCluster(t, &record{NodeImage: "podenv-node", ImageID: "sha256:1111", Workers: 1})
	cfg := podenvConfig()
	cfg.APIServerPort = takenPort(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a deadline only
	defer cancel()
	if _, err := Create(ctx, l, e, cfg, nil); !errors.Is(err, remedy.ErrPortInUse) {
		t.Errorf("Create: %v, want ErrPortInUse", err)
	}
	if nodes := f.names(t, "containers"); len(nodes) != 2 {
		t.Errorf("nodes left: %q, want both", nodes)
	}
}
