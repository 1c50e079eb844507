package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"podenv.dev/hack/internal/testutil"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"podenv": main})
}

// Each file of testdata is a script of a user's commands. They run in a repository that has
// only one series and the names of two suites.
func TestCommandLine(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": testutil.Status, "verbs": verbs, "listen": listen, "unread": unread,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("SERIES", "")
			for name, text := range map[string]string{
				"go.mod":               "module podenv.dev\n\ngo 1.26.0\n",
				"patches/v1.33/go.mod": "module podenv.dev/patches/v1.33\n\nrequire k8s.io/kubernetes v1.33.13\n",
				"patches/v1.33/go.sum": "",

				"test/e2e/envfiles/e2e_test.go": "package envfiles\n",
				"test/e2e/upgrade/e2e_test.go":  "package upgrade\n",
			} {
				path := filepath.Join(env.WorkDir, "repo", name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					return err
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					return err
				}
			}
			return writeKeys(env.WorkDir)
		},
	})
}

// writeKeys writes the files private.pem and public.pem to dir.
func writeKeys(dir string) error {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	privateDER, err := x509.MarshalPKCS8PrivateKey(private)
	publicDER, errPublic := x509.MarshalPKIXPublicKey(public)
	write := func(name, kind string, der []byte) error {
		return os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
	}
	return errors.Join(err, errPublic, write("private.pem", "PRIVATE KEY", privateDER), write("public.pem", "PUBLIC KEY", publicDER))
}

// listen listens on a port of 127.0.0.1 at $PORT until the script ends.
func listen(ts *testscript.TestScript, _ bool, _ []string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { listener.Close() })
	ts.Setenv("PORT", strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))
}

// unread checks that a command whose output nobody reads fails without a word.
func unread(ts *testscript.TestScript, _ bool, args []string) {
	r, w, err := os.Pipe()
	ts.Check(err)
	r.Close()
	defer w.Close()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout = ts.Getenv("WORK")+"/repo", append(os.Environ(), "PATH="+ts.Getenv("PATH")), w
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 || said.Len() > 0 {
		ts.Fatalf("%v: %s", err, &said)
	}
}

// verbs checks that podenv has just the verbs named, each with a text and an example.
func verbs(ts *testscript.TestScript, _ bool, names []string) {
	var have []string
	for _, cmd := range newRoot(&app{out: os.Stdout, errs: os.Stderr}).Commands() {
		have = append(have, cmd.Name())
		if cmd.Short == "" || !strings.Contains(cmd.Example, "podenv "+cmd.Name()) {
			ts.Fatalf("%s has no description or no example of itself", cmd.Name())
		}
	}
	slices.Sort(have)
	slices.Sort(names)
	if !slices.Equal(have, names) {
		ts.Fatalf("podenv has the verbs %q, want %q", have, names)
	}
}

// Verbs that make and delete clusters of their own must not do that to the user's.
func TestEachVerbHasItsOwnDefaultName(t *testing.T) {
	for line, want := range map[string]string{
		"up": "podenv", "down": "podenv", "node list": "podenv", "compare": "compare", "conformance": "conformance", "gate walk": "gate",
		"conformance --name mine": "mine",
	} {
		t.Run(line, func(t *testing.T) {
			a := &app{out: io.Discard, errs: io.Discard}
			cmd, rest, err := newRoot(a).Find(strings.Fields(line))
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Fatal(err)
			}
			if err := a.prepare(cmd); err != nil {
				t.Fatal(err)
			}
			if a.name != want {
				t.Errorf("the cluster is %q, want %q", a.name, want)
			}
		})
	}
}
