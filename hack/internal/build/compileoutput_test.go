package build

import (
	"io"
	"path/filepath"
	"testing"

	"podenv.dev/hack/internal/run"
)

func TestCompileOutputSaysWhatTheGoToolDoes(t *testing.T) {
	bin := t.TempDir()
	o := newCompileOutput([]string{"kubelet", "kubectl"}, bin, nil)
	wantStatus := func(want string) {
		t.Helper()
		if got := o.status(); got != want {
			t.Errorf("status = %q, want %q", got, want)
		}
	}
	lines := run.Lines(o.line)
	out := func(s string) {
		t.Helper()
		if n, err := io.WriteString(lines, s); n != len(s) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}

	wantStatus("looking for what has changed")
	out("+ go build -v\nk8s.io/kubernetes/pkg/kub")
	wantStatus("looking for what has changed")
	out("elet\ngolang.org/x/sys/unix\n")
	wantStatus("2 packages compiled, now golang.org/x/sys/unix")
	o.setTotal(900)
	wantStatus("2 of up to 900 packages, now golang.org/x/sys/unix")
	out("k8s.io/kubernetes/cmd/kubelet\n")
	wantStatus("3 of up to 900 packages, linking kubelet")
	write(t, filepath.Join(bin, "kubelet"), "linked")
	wantStatus("3 of up to 900 packages (1 of 2 done)")
	out("k8s.io/kubernetes/cmd/kubectl\n")
	wantStatus("4 of up to 900 packages, linking kubectl (1 of 2 done)")

	out("# k8s.io/kubernetes/pkg/x\npkg/x/x.go:1:1: wrong\n")
	if lines := o.lines(); len(lines) != 2 || lines[1] != "pkg/x/x.go:1:1: wrong" {
		t.Errorf("lines %q, want the messages without packages and command", lines)
	}
}

func TestCompileOutputSeesLinkingWithoutCompiling(t *testing.T) {
	bin := t.TempDir()
	o := newCompileOutput([]string{"kubelet", "kubectl"}, bin, nil)
	write(t, filepath.Join(bin, "kubectl"), "linked")
	if got, want := o.status(), "linking (1 of 2 done)"; got != want {
		t.Errorf("status = %q, want %q", got, want)
	}
}
