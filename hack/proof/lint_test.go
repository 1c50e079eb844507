package proof

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podenv.dev/hack/internal/run"
)

// lint leaves the processor to the build, for which more checks wait.
func lint(c *check) error {
	c.part("gofmt", func() error {
		files, err := c.tracked("*.go")
		if err != nil {
			return err
		}
		out, err := c.command("gofmt", append([]string{"-l", "--"}, files...)...).Output()
		if err == nil && out != "" {
			err = fmt.Errorf("gofmt -w would change:\n%s", out)
		}
		return err
	})
	for _, command := range []string{
		"go mod tidy -diff", "go vet ./...", "go tool staticcheck ./...",
		// Kubernetes is built for 32 bits, too, and the types of system calls differ by architecture.
		"env CGO_ENABLED=0 GOARCH=386 go vet ./pkg/...", "env CGO_ENABLED=0 GOARCH=s390x go vet ./pkg/...",
	} {
		c.part(command, func() error {
			c.step.Now("%s", command)
			cmd := c.command("nice", append([]string{"-n19"}, strings.Fields(command)...)...)
			if os.Getenv("GOGC") == "" {
				cmd.Env(run.LessGC...)
			}
			return cmd.Run()
		})
	}
	c.part("shellcheck", c.shellcheck)
	c.part("no generated Kubernetes code in git", func() error {
		files, err := c.tracked("*zz_generated*", "*generated.pb.go", "*generated.proto", "*types_swagger_doc_generated.go")
		if err == nil && len(files) > 0 {
			err = fmt.Errorf("delete what the tree's generators make: %s", strings.Join(files, ", "))
		}
		return err
	})
	return nil
}

// command prepares a command that runs in the repository, with its output in the check's log.
func (c *check) command(name string, args ...string) *run.Cmd {
	return run.Command(c.ctx, name, args...).Dir(repo.Root).Log(c.step.Log())
}

// tracked lists the files of the repository that git knows or would add.
func (c *check) tracked(patterns ...string) ([]string, error) {
	args := append([]string{"ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "-z", "--"}, patterns...)
	out, err := c.command("git", args...).Output()
	if err != nil {
		return nil, err
	}
	var files []string
	for name := range strings.SplitSeq(strings.TrimRight(out, "\x00"), "\x00") {
		if _, err := os.Stat(filepath.Join(repo.Root, name)); name != "" && err == nil {
			files = append(files, name)
		}
	}
	return files, nil
}

// shellcheck checks every file that a shell runs, known by its first line.
func (c *check) shellcheck() error {
	files, err := c.tracked()
	if err != nil {
		return err
	}
	var scripts []string
	for _, name := range files {
		if isShell(filepath.Join(repo.Root, name)) {
			scripts = append(scripts, name)
		}
	}
	if len(scripts) == 0 {
		return errors.New("no shell script found, though .ci/run is one: is this a checkout?")
	}
	return c.command("shellcheck", scripts...).Run()
}

func isShell(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 64)
	n, _ := f.Read(head)
	line, _, _ := bytes.Cut(head[:n], []byte("\n"))
	return bytes.HasPrefix(line, []byte("#!")) && (bytes.Contains(line, []byte("bash")) || bytes.HasSuffix(line, []byte("sh")))
}

func TestIsShellKnowsScriptsByTheirFirstLine(t *testing.T) {
	for text, want := range map[string]bool{
		"#!/bin/sh\n": true, "#!/usr/bin/env bash\nset -e\n": true, "#!/usr/bin/python3\n": false, "package main\n": false, "": false,
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if got := isShell(path); got != want {
			t.Errorf("isShell(%q) = %t", strings.TrimSpace(text), got)
		}
	}
}
