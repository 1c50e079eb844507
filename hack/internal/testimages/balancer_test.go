package testimages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"podenv.dev/hack/internal/image/imagetest"
)

func TestTheBalancerHasTheNameThatKindAsksFor(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kind").Output()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "pkg/cluster/internal/loadbalancer/const.go"))
	if err != nil {
		t.Fatal(err)
	}
	if want := `"` + Balancer + `"`; !strings.Contains(string(source), want) {
		t.Errorf("kind's image is not %s:\n%s", want, source)
	}
}

func TestTheBalancerHasWhatKindRuns(t *testing.T) {
	l := newRepository(t)
	write(t, filepath.Join(l.Root, "hack/images/balancer/main.go"), "package main\n\nfunc main() {}\n", 0o644)
	spec, err := balancer(t.Context(), l, packaged, nil)
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "balancer.tar")
	if err := spec.Write(archive); err != nil {
		t.Fatal(err)
	}
	have, _ := imagetest.Archive(t, archive)
	for _, file := range []string{"bin/envoy", "bin/bash", "bin/sh"} {
		if _, ok := have[file]; !ok {
			t.Errorf("no %s", file)
		}
	}
	if spec.Config.Labels[BalancerLabel] == "" {
		t.Error("the image has no key")
	}
}
