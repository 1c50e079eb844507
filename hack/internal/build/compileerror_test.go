package build

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"podenv.dev/hack/internal/run"
)

func TestCompileErrorNamesThePatch(t *testing.T) {
	broken := func(dir string) {
		os.WriteFile(filepath.Join(dir, "pkg/node/node.go"), []byte("package node\n\nconst Word = Wrod\n"), 0o644)
	}
	harmless := func(dir string) { editWord(dir, "word", "other") }
	l, tree := newTree(t, harmless, broken)

	_, err := Binaries(t.Context(), l, tree, runtime.GOARCH, []string{"kubelet"}, nil)
	if err == nil {
		t.Fatal("it compiled")
	}
	for _, want := range []string{
		"the tree does not compile:",
		"# k8s.io/kubernetes/pkg/node",
		"pkg/node/node.go:3:14: undefined: Wrod",
		"pkg/node/node.go was touched by patch 0002-kubelet-change-number-2.patch",
		"fix it in " + tree.Dir + " and run the same command again",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "0001-") {
		t.Errorf("the error blames a patch that has not touched the file:\n%v", err)
	}

	if err := editWord(tree.Dir, "node", "changed"); err != nil {
		t.Fatal(err)
	}
	r, err := Binaries(t.Context(), l, tree, runtime.GOARCH, []string{"kubelet"}, nil)
	if err != nil {
		t.Fatalf("after the fix: %v", err)
	}
	if got := outputOf(t, r.Binaries["kubelet"]); !strings.Contains(got, "changed") {
		t.Errorf("the kubelet says %q", got)
	}
}

func TestCompileErrorNamesEditsAndOtherCommits(t *testing.T) {
	l, tree := newTree(t)
	if err := editWord(tree.Dir, "node", "committed"); err != nil {
		t.Fatal(err)
	}
	commit(t, tree.Dir, "try something")
	write(t, filepath.Join(tree.Dir, "pkg/node/node.go"), "package node\n\nconst Word = 1 +\n")

	_, err := Binaries(t.Context(), l, tree, runtime.GOARCH, []string{"kubelet"}, nil)
	if err == nil {
		t.Fatal("it compiled")
	}
	for _, want := range []string{"your uncommitted edit and commit ", "(try something)"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

func TestCompileErrorKeepsTheFirstLines(t *testing.T) {
	_, tree := newTree(t)
	messages := []string{"go: downloading example.com/x v1.0.0", "# k8s.io/kubernetes/pkg/node"}
	for n := range 30 {
		messages = append(messages, fmt.Sprintf("pkg/node/node.go:%d:1: undefined: x", n+1))
	}
	err := compileError(t.Context(), tree, messages)
	if err == nil {
		t.Fatal("not taken for a compile error")
	}
	lines := strings.Split(err.Error(), "\n  ")
	if len(lines) != shownLines+3 || lines[2] != messages[2] || lines[shownLines+1] != fmt.Sprintf("and %d lines more", 31-shownLines) {
		t.Errorf("%d lines, without what touched a file that is as the release has it:\n%v", len(lines), err)
	}
}

func TestExplainSaysWhatToDo(t *testing.T) {
	_, tree := newTree(t)
	failed := &run.Error{Line: "go build", Tail: "k8s.io/kubernetes/pkg/x", Err: errors.New("exit status 1")}
	for _, tc := range []struct{ name, said, want string }{
		{"too little memory", "/go/pkg/tool/compile: signal: killed", "out of memory"},
		{"a module that cannot be had", "dial tcp: lookup proxy.test: no such host", "network"},
		{"anything else", "something else", "something else"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &compilation{tree: tree}
			err := c.explain(t.Context(), failed, []string{tc.said})
			if !errors.Is(err, failed) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), tc.said) {
				t.Errorf("explain = %v, want %q in it", err, tc.want)
			}
		})
	}
}
