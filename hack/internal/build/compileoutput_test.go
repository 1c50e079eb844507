package build

import (
	"io"
	"testing"

	"podenv.dev/hack/internal/run"
)

func TestCompileOutputSaysWhatTheGoToolDoes(t *testing.T) {
	o := new(compileOutput)
	wantCompiled := func(want int) {
		t.Helper()
		if o.compiled != want {
			t.Errorf("%d packages compiled, want %d", o.compiled, want)
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
	wantCompiled(0)
	out("elet\ngolang.org/x/sys/unix\n")
	wantCompiled(2)

	out("# k8s.io/kubernetes/pkg/x\npkg/x/x.go:1:1: wrong\n")
	if lines := o.messages; len(lines) != 2 || lines[1] != "pkg/x/x.go:1:1: wrong" {
		t.Errorf("lines %q, want the messages without packages and command", lines)
	}
}
