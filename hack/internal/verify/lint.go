package verify

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// Lint checks formatting and runs the linters over the repository at root.
func Lint(root string) Check {
	return Check{Name: "lint", Group: "lint", Run: func(ctx context.Context, step *progress.Step) ([]junit.Case, error) {
		linters := []struct {
			name string
			run  func(context.Context, string, *progress.Step) error
		}{
			{"gofmt", gofmt},
			{"go mod tidy", tidy},
			{"go vet", func(ctx context.Context, root string, step *progress.Step) error {
				return run.Command(ctx, "go", "vet", "./...").Dir(root).Log(step.Log()).Run()
			}},
			{"staticcheck", func(ctx context.Context, root string, step *progress.Step) error {
				return run.Command(ctx, "go", "tool", "staticcheck", "./...").Dir(root).Log(step.Log()).Run()
			}},
			{"shellcheck", shellcheck},
			{"no generated Kubernetes code in git", noGenerated},
		}
		var cases []junit.Case
		for _, l := range linters {
			step.Now("%s", l.name)
			c := junit.Case{Name: l.name, ClassName: "lint"}
			if err := l.run(ctx, root, step); err != nil {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				c.Failure = &junit.Message{Message: firstLine(err.Error()), Text: err.Error()}
			}
			cases = append(cases, c)
		}
		return cases, nil
	}}
}

// tracked lists the files of the repository that git knows or would add.
func tracked(ctx context.Context, root string, patterns ...string) ([]string, error) {
	args := append([]string{"ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "-z", "--"}, patterns...)
	out, err := run.Command(ctx, "git", args...).Dir(root).Output()
	if err != nil {
		return nil, err
	}
	var files []string
	for _, name := range strings.Split(strings.TrimRight(out, "\x00"), "\x00") {
		if _, err := os.Stat(filepath.Join(root, name)); name != "" && err == nil {
			files = append(files, name)
		}
	}
	return files, nil
}

func gofmt(ctx context.Context, root string, _ *progress.Step) error {
	files, err := tracked(ctx, root, "*.go")
	if err != nil {
		return err
	}
	out, err := run.Command(ctx, "gofmt", append([]string{"-l", "--"}, files...)...).Dir(root).Output()
	if err != nil {
		return err
	}
	if out != "" {
		return fmt.Errorf("gofmt -w would change:\n%s", out)
	}
	return nil
}

func tidy(ctx context.Context, root string, step *progress.Step) error {
	return run.Command(ctx, "go", "mod", "tidy", "-diff").Dir(root).Log(step.Log()).Run()
}

// shellcheck checks every file that a shell runs, known by its first line.
func shellcheck(ctx context.Context, root string, step *progress.Step) error {
	files, err := tracked(ctx, root)
	if err != nil {
		return err
	}
	var scripts []string
	for _, name := range files {
		if isShell(filepath.Join(root, name)) {
			scripts = append(scripts, name)
		}
	}
	if len(scripts) == 0 {
		return fmt.Errorf("no shell script found, though .ci/run is one: is %s a checkout?", root)
	}
	return run.Command(ctx, "shellcheck", scripts...).Dir(root).Log(step.Log()).Run()
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

// noGenerated refuses what the tree's generators make.
func noGenerated(ctx context.Context, root string, _ *progress.Step) error {
	files, err := tracked(ctx, root, "*zz_generated*", "*generated.pb.go", "*generated.proto", "*types_swagger_doc_generated.go")
	if err != nil {
		return err
	}
	if len(files) > 0 {
		return fmt.Errorf("generated code does not belong in git:\n%s", strings.Join(files, "\n"))
	}
	return nil
}
