package build

import "testing"

func TestCompileOutputSaysWhatTheGoToolDoes(t *testing.T) {
	o := &compileOutput{components: []string{"kubelet", "kubectl"}}
	says := func(want string) {
		t.Helper()
		if got := o.now(); got != want {
			t.Errorf("now = %q, want %q", got, want)
		}
	}
	out := func(s string) {
		t.Helper()
		if n, err := o.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}

	says("looking for what has changed, and linking")
	out("+ go build -v\nk8s.io/kubernetes/pkg/kub")
	says("looking for what has changed, and linking")
	out("elet\ngolang.org/x/sys/unix\n")
	says("2 packages compiled, now golang.org/x/sys/unix")
	out("k8s.io/kubernetes/cmd/kubelet\n")
	says("3 packages compiled, linking kubelet")
	out("k8s.io/kubernetes/cmd/kubectl\n")
	says("4 packages compiled, linking kubelet, kubectl")

	out("# k8s.io/kubernetes/pkg/x\npkg/x/x.go:1:1: wrong\n")
	if lines := o.lines(); len(lines) != 2 || lines[1] != "pkg/x/x.go:1:1: wrong" {
		t.Errorf("lines %q, want the messages without packages and command", lines)
	}
}
