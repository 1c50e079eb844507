package build

import (
	"io"
	"testing"

	"podenv.dev/hack/internal/run"
)

func TestCompileOutputSaysWhatTheGoToolDoes(t *testing.T) {
	o := new(compileOutput)
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

	out("+ go build -v\nk8s.io/kubernetes/pkg/kub")
	wantStatus("0 packages compiled")
	out("elet\ngolang.org/x/sys/unix\n")
	wantStatus("2 packages compiled")
	o.total.Store(900)
	wantStatus("2 of up to 900 packages")

	out("# k8s.io/kubernetes/pkg/x\npkg/x/x.go:1:1: wrong\n")
	if lines := o.messages; len(lines) != 2 || lines[1] != "pkg/x/x.go:1:1: wrong" {
		t.Errorf("lines %q, want the messages without packages and command", lines)
	}
}
