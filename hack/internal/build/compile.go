// Package build compiles the Kubernetes components of a source tree and packs them:
// binaries, container images, and the server tarball of a Kubernetes release.
//
//	source.Tree -> Binaries -> Images -> ServerTarball
//
// Each result is cached under _output/build/<tree>, keyed by all of its inputs. If nothing
// changed, a second call only checks the key.
package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/source"
)

// goEnv and goFlags are the same for every tree, stock or patched, so that all trees share the
// Go build cache. -mod=mod: the published staging modules require each other by version, which
// the tree's replace directives override. -buildvcs=false: the stamp says what was built, and
// git's state would relink everything after each commit.
var (
	goEnv   = []string{"GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0", "GOOS=linux"}
	goFlags = []string{"-mod=mod", "-trimpath", "-buildvcs=false"}
)

// compilation is a run of `go build` in a tree.
type compilation struct {
	tree        *source.Tree
	arch        string
	dir         string // the build's folder
	linkerFlags string
}

// run brings components in the folder bin up to date with one `go build`. The go command links
// only what is out of date, and replaces a binary by renaming the new one.
func (c *compilation) run(ctx context.Context, components []string, step *progress.Step) error {
	// An interrupted go command leaves its temporary folder behind, sometimes a gigabyte. In a
	// folder on the file system of bin it can also rename binaries. A copy could be cut short.
	bin, tmp := filepath.Join(c.dir, "bin"), filepath.Join(c.dir, "work", "tmp")
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	for _, dir := range []string{tmp, bin} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}

	output := &compileOutput{step: step}
	step.Now("looking for what has changed")
	args := append([]string{"build", "-v", "-o", bin + "/", "-ldflags", c.linkerFlags}, goFlags...)
	for _, component := range components {
		args = append(args, "./cmd/"+component)
	}
	err := run.Command(ctx, "go", args...).
		Dir(c.tree.Dir).Env(goEnv...).Env("GOTMPDIR="+tmp, "GOARCH="+c.arch).
		Log(io.MultiWriter(step.Log(), run.Lines(output.line))).Run()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return c.explain(ctx, err, output.messages)
}

// explain turns a failed build's output into an error that says what to do.
func (c *compilation) explain(ctx context.Context, err error, lines []string) error {
	if e := compileError(ctx, c.tree, lines); e != nil {
		return e
	}
	var failed *run.Error
	if errors.As(err, &failed) {
		// Without the compiled packages, which say nothing about the failure.
		failed.Tail = strings.Join(lines[max(0, len(lines)-10):], "\n")
	}
	switch output := strings.Join(lines, "\n"); {
	case strings.Contains(output, "signal: killed"):
		return fmt.Errorf("%w\n  the machine ran out of memory: a build needs about 4 GB", err)
	case strings.Contains(output, "dial tcp"):
		return fmt.Errorf("%w\n  a Go module is missing and the network cannot be reached: see the proxy settings of go env", err)
	}
	return err
}

// maxMessages is how many lines of messages a compileOutput keeps.
const maxMessages = 500

// importPath matches a line of `go build -v`: a package that is being compiled.
var importPath = regexp.MustCompile(`^[\w.~-]+(/[\w.~+-]+)*$`)

// compileOutput reads the output of `go build -v` and shows the progress in a step.
type compileOutput struct {
	step     *progress.Step
	messages []string // all lines except packages: mostly compiler errors
	compiled int
}

func (o *compileOutput) line(line string) {
	if importPath.MatchString(line) {
		o.compiled++
		o.step.Now("%d packages compiled, now %s", o.compiled, line) // a main package is compiled last, and then linked
		return
	}
	// The first line is the command, which package run writes.
	if len(o.messages) < maxMessages && !strings.HasPrefix(line, "+ ") {
		o.messages = append(o.messages, line)
	}
}

// shownLines is how many of the compiler's lines the error of a tree that does not compile has.
const shownLines = 20

// position matches the start of a compiler message about a line of a file.
var position = regexp.MustCompile(`^(\S+\.(?:go|s)):\d+(?::\d+)?: `)

// compileError returns the error in the go command's messages, or nil if they name no line of a
// file of the tree t. It says which patches, commits and edits changed the files since the release.
func compileError(ctx context.Context, t *source.Tree, messages []string) error {
	var lines, files []string
	for _, line := range messages {
		found := position.FindStringSubmatch(line)
		if found != nil && !slices.Contains(files, found[1]) {
			files = append(files, found[1])
		}
		if found != nil || strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "\t") {
			lines = append(lines, strings.ReplaceAll(line, "\t", "    "))
		}
	}
	if len(files) == 0 {
		return nil
	}
	text := []string{"the tree does not compile:"}
	text = append(text, lines[:min(len(lines), shownLines)]...)
	if more := len(lines) - shownLines; more > 0 {
		text = append(text, fmt.Sprintf("and %d lines more", more))
	}
	subjects := map[string]string{} // the files of patches, by the first line of the message
	if !t.Stock {
		patches, _ := t.Series.Describe() // of one that cannot be read, the commit is named
		for _, p := range patches {
			subjects[p.Title] = p.File
		}
	}
	for _, file := range files[:min(len(files), 5)] {
		if changes := touchedBy(ctx, t, file, subjects); changes != "" {
			text = append(text, file+" was touched by "+changes)
		}
	}
	text = append(text, fmt.Sprintf("fix it in %s and run the same command again", t.Dir))
	return errors.New(strings.Join(text, "\n  "))
}

// touchedBy lists the patches, other commits and edits that changed file since the release.
// It is empty if there are none, or if git fails.
func touchedBy(ctx context.Context, t *source.Tree, file string, subjects map[string]string) string {
	var changes []string
	repo := gitrepo.Repo{Dir: t.Dir}
	if dirty, err := repo.Quiet(ctx, "status", "--porcelain", "--", file); err == nil && dirty != "" {
		changes = append(changes, "your uncommitted edit")
	}
	// The release is the first commit, and the only one without a parent.
	log, err := repo.Lines(ctx, "log", "--min-parents=1", "--format=%h %s", "--", file)
	if err != nil {
		return strings.Join(changes, " and ")
	}
	for _, line := range log {
		id, subject, _ := strings.Cut(line, " ")
		if patch, known := subjects[subject]; known {
			changes = append(changes, "patch "+patch)
		} else {
			changes = append(changes, fmt.Sprintf("commit %s (%s)", id, subject))
		}
	}
	return strings.Join(changes, " and ")
}
