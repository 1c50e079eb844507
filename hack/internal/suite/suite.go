// Package suite builds the end-to-end suites of test/e2e and runs them on the cluster of a kubeconfig.
package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
	"podenv.dev/test/e2e/options"
)

var (
	// ErrFailed is returned by Run if a spec failed, or the setup of the suite.
	ErrFailed = errors.New("the suite failed")
	// ErrNoSpecs is returned by Run if no spec was selected or all were skipped: such a run proves nothing.
	ErrNoSpecs = errors.New("no spec ran")
)

// Options say what to run, and where.
type Options struct {
	options.Options
	Suite       string        // folder below test/e2e
	Kubeconfig  string        // file
	Context     string        // of the kubeconfig; its current one if empty
	Focus       string        // regular expression of spec names; all if empty
	LabelFilter string        // Ginkgo label expression, e.g. "sig-node && !Slow"; all if empty
	Procs       int           // specs in parallel; 4 if zero: a spec mostly waits for the kubelet
	Timeout     time.Duration // of the whole run; an hour if zero, to end one that hangs: a busy host is slow
}

// Result is the result of a run.
type Result struct {
	junit.Counts
	JUnit  string // the file with the results, and the report of each failure
	Ginkgo string // the file with Ginkgo's JSON report
	Report string // a Markdown report of the suite itself; often empty
}

// Run runs a suite. The step's log gets the whole output. The Result is also valid with
// ErrFailed and ErrNoSpecs; any other error means that the suite could not be run.
func Run(ctx context.Context, l layout.Layout, o Options, step *progress.Step) (Result, error) {
	o, err := o.complete(l)
	if err != nil {
		return Result{}, err
	}
	step.Now("connecting to the cluster")
	if _, err := Connect(ctx, o.Kubeconfig, o.Context); err != nil {
		return Result{}, err
	}
	// Ginkgo runs the binary in the binary's folder. Specs run podenv there, so that the folder
	// must be in the checkout.
	if err := os.MkdirAll(l.Cache("e2e"), 0o755); err != nil {
		return Result{}, err
	}
	dir, err := os.MkdirTemp(l.Cache("e2e"), "run-")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(dir)
	binary, err := build(ctx, l, o.Suite, dir, step)
	if err == nil && o.Podenv != "" {
		err = buildPlugin(ctx, l, filepath.Dir(o.Podenv), step)
	}
	if err != nil {
		return Result{}, err
	}
	// If a run writes no results, older ones must not be taken for them.
	for _, file := range []string{o.JUnit, o.beside(".md"), o.beside(".json")} {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return Result{}, err
		}
	}
	step.Now("starting the specs of %s", o.Suite)
	runErr := run.Command(ctx, "go", o.ginkgo(binary)...).Dir(l.Root).Log(io.MultiWriter(step.Log(), run.Lines(Follow(step)))).Run()
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	cases, err := junit.Read(o.JUnit)
	if err != nil {
		return Result{}, fmt.Errorf("the suite %s ended without results: %w", o.Suite, errors.Join(runErr, err))
	}
	return newResult(o, cases, runErr)
}

// Connect returns a client of the cluster of a kubeconfig, whose requests may take 30 seconds, or an
// error, with what to do about it, unless the API server answers.
func Connect(ctx context.Context, kubeconfig, kubecontext string) (kubernetes.Interface, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: kubecontext}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w; `kubectl --kubeconfig %[1]s config get-contexts` lists what it has; give another with --kubeconfig, or make a cluster with `podenv up`", kubeconfig, err)
	}
	config.Timeout = 30 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	if _, err := client.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx); err != nil {
		return nil, fmt.Errorf("the API server %s of kubeconfig %s does not answer: %w; is the cluster up? `podenv up` makes one", config.Host, kubeconfig, err)
	}
	return client, nil
}

// build compiles the suite called name, and returns a copy of the test binary in dir, which
// no other run replaces. The go command links only if something has changed.
func build(ctx context.Context, l layout.Layout, name, dir string, step *progress.Step) (string, error) {
	if _, err := os.Stat(filepath.Join(l.Root, "test", "e2e", name)); err != nil || name != filepath.Base(name) {
		return "", fmt.Errorf("no suite %q in test/e2e", name)
	}
	cache := l.Cache("e2e")
	unlock, err := lockfile.Lock(ctx, filepath.Join(cache, name+".lock"), "that compiles the suite "+name, step)
	if err != nil {
		return "", err
	}
	defer unlock()
	step.Now("compiling the suite (minutes the first time: it has all of Kubernetes' e2e framework)")
	built := filepath.Join(cache, name+".test")
	if err := run.Command(ctx, "go", "test", "-c", "-ldflags=-s -w", "-o", built, "./test/e2e/"+name).Dir(l.Root).Log(step.Log()).Run(); err != nil {
		return "", fmt.Errorf("compiling test/e2e/%s: %w", name, err)
	}
	return filepath.Join(dir, name+".test"), run.Command(ctx, "cp", built, dir).Run()
}

// buildPlugin builds `kubectl podenv` for the specs that run it, into the folder of podenv.
func buildPlugin(ctx context.Context, l layout.Layout, dir string, step *progress.Step) error {
	unlock, err := lockfile.Lock(ctx, filepath.Join(l.Cache("e2e"), "kubectl-podenv.lock"), "that builds kubectl-podenv", step)
	if err != nil {
		return err
	}
	defer unlock()
	return run.Command(ctx, "make", "--no-print-directory", "kubectl-podenv", "PLUGIN="+filepath.Join(dir, "kubectl-podenv")).Dir(l.Root).Log(step.Log()).Run()
}

// Validate returns an error for the first invalid option.
func (o Options) Validate(l layout.Layout) error {
	files, err := filepath.Glob(filepath.Join(l.Root, "test", "e2e", "*", "e2e_test.go"))
	if err != nil {
		return err
	}
	var names []string
	for _, file := range files {
		names = append(names, filepath.Base(filepath.Dir(file)))
	}
	if !slices.Contains(names, o.Suite) {
		return fmt.Errorf("--suite %q: choose one of %s", o.Suite, strings.Join(names, ", "))
	}
	for _, option := range []struct {
		name  string
		value int64
	}{{"procs", int64(o.Procs)}, {"walks", int64(o.Walks)}, {"starts", int64(o.Starts)}, {"timeout", int64(o.Timeout)}} {
		if option.value <= 0 {
			return fmt.Errorf("--%s must be more than 0", option.name)
		}
	}
	if _, err := regexp.Compile(o.Focus); err != nil {
		return fmt.Errorf("--focus: %w", err)
	}
	if _, err := types.ParseLabelFilter(o.LabelFilter); err != nil {
		return fmt.Errorf("--label-filter %q: %w", o.LabelFilter, err)
	}
	return nil
}

// complete sets defaults, and makes paths absolute.
func (o Options) complete(l layout.Layout) (Options, error) {
	o.Procs, o.Timeout = cmp.Or(o.Procs, 4), cmp.Or(o.Timeout, time.Hour)
	o.Walks, o.Starts = cmp.Or(o.Walks, 1), cmp.Or(o.Starts, 50)
	if o.JUnit == "" {
		o.JUnit = filepath.Join(l.Output(), "e2e", o.Suite+".xml")
	}
	// The specs run in another folder.
	for _, file := range []*string{&o.Kubeconfig, &o.JUnit, &o.Kubectl, &o.Podenv} {
		if *file == "" {
			continue
		}
		abs, err := filepath.Abs(*file)
		if err != nil {
			return o, err
		}
		*file = abs
	}
	return o, nil
}

// beside returns the path of a file beside the JUnit file: .md is the suite's own report, .json Ginkgo's.
func (o Options) beside(extension string) string {
	return strings.TrimSuffix(o.JUnit, ".xml") + extension
}

// ginkgo returns the arguments with which `go` runs the specs in binary.
func (o Options) ginkgo(binary string) []string {
	args := []string{"tool", "ginkgo", "run", "--no-color", "-v",
		fmt.Sprintf("--procs=%d", o.Procs), "--timeout=" + o.Timeout.String(), "--label-filter=" + o.LabelFilter}
	if o.Focus != "" {
		args = append(args, "--focus="+o.Focus)
	}
	args = append(args, binary, "--", "--kubeconfig="+o.Kubeconfig, "--context="+o.Context)
	return append(args, o.Args()...)
}

// newResult returns the result of Run from the test cases and the error of the command.
func newResult(o Options, cases []junit.Case, runErr error) (Result, error) {
	result := Result{Counts: junit.Count(cases), JUnit: o.JUnit, Ginkgo: o.beside(".json")}
	report, err := os.ReadFile(o.beside(".md"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return result, err
	}
	result.Report = string(report)
	var why strings.Builder
	for _, test := range cases {
		if failure := test.Problem(); failure != nil {
			fmt.Fprintf(&why, "\n  %s\n    %s", test.Name, failure.Gist())
		}
	}
	switch {
	case result.Failed > 0:
		return result, fmt.Errorf("%w: %s:%s\n  events, descriptions and kubelet logs are in %s", ErrFailed, result.Counts, why.String(), o.JUnit)
	case runErr != nil:
		return result, fmt.Errorf("%w: no spec failed, but %w", ErrFailed, runErr)
	case result.Passed == 0 && result.Skipped == 0:
		return result, fmt.Errorf("%w: loosen --focus %q and --label-filter %q", ErrNoSpecs, o.Focus, o.LabelFilter)
	case result.Passed == 0:
		return result, fmt.Errorf("%w: all %d were skipped; %s says why each was", ErrNoSpecs, result.Skipped, o.JUnit)
	}
	return result, nil
}

var (
	specCount  = regexp.MustCompile(`^Will run (\d+) of \d+ specs`)
	specResult = regexp.MustCompile(`^(•|S|P)( \[[A-Z ]+\])? \[[0-9.]+ seconds\]`)
	// specStep matches a step of a spec; its start time is not in the group.
	specStep = regexp.MustCompile(`^\s+STEP: (.*?)( @ \S+ \S+)?$`)
	// separator is the line between specs.
	separator = regexp.MustCompile(`^-{30}$`)
	// labels match what the framework and Ginkgo add to the text of a spec.
	labels = regexp.MustCompile(`\[[^\]]*\]\s*`)
)

// follower reads Ginkgo's verbose output line by line, and shows the progress of the specs in step.
type follower struct {
	step    *progress.Step
	total   string
	done    int
	failed  int
	last    string // the previous line
	running string // the spec that runs, if specs run one at a time
}

// Follow returns a function that reads such output, and shows its progress in step.
func Follow(step *progress.Step) func(line string) { return (&follower{step: step}).line }

func (f *follower) line(line string) {
	last := f.last
	f.last = line
	if match := specCount.FindStringSubmatch(line); match != nil {
		f.total = match[1]
		return
	}
	if match := specResult.FindStringSubmatch(line); match != nil {
		f.done++
		if strings.Contains(match[2], "FAILED") || strings.Contains(match[2], "PANICKED") || strings.Contains(match[2], "TIMEDOUT") {
			f.failed++
		}
		f.running = ""
		f.show("")
		return
	}
	// Ginkgo prints the name of a spec after its result if specs run in parallel, and when it
	// starts if they do not.
	switch isName := strings.HasPrefix(line, "[sig-"); {
	case isName && specResult.MatchString(last):
		f.show(", last: " + shortName(line))
	case isName && separator.MatchString(last):
		f.running = shortName(line)
		f.show(", now: " + f.running)
	case f.running != "":
		if match := specStep.FindStringSubmatch(line); match != nil {
			f.show(", now: " + f.running + ": " + match[1])
		}
	}
}

func (f *follower) show(what string) {
	failed := ""
	if f.failed > 0 {
		failed = fmt.Sprintf(", %d failed", f.failed)
	}
	f.step.Now("%d of %s specs%s%s", f.done, f.total, failed, what)
}

func shortName(name string) string { return strings.TrimSpace(labels.ReplaceAllString(name, "")) }
