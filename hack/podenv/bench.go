package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/htmlreport"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/run"
)

func newBench(a *app) *cobra.Command {
	b := &benchRun{app: a}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure: env files, names and expansion beside upstream's, the kubelet, admission, pods, the harness",
		Long: `bench measures, prints tables, and compares the results with the goals. A goal that is
not reached does not make the command fail.

Groups for --only, the first five are the default:

  envfile    the reader of env files beside upstream's, joho/godotenv, compose-go's
             and os.ReadFile, all on the same files (test/bench)
  names      the rules for names of variables beside upstream's, which for strict
             names is a regular expression (test/bench)
  expansion  $(NAME) in strings beside upstream's Expand, on the cases of its tests
             and on text without references (test/bench)
  kubelet    makeEnvironmentVariables in the tree, compiled as it is, your edits
             included: fileKeyRefs beside literal values
  admission  the admission plugin PodPreset in the tree, compiled in the same way: a pod
             in a namespace without presets, and in one with 100, of which 3 match
  cluster    pods with fileKeyRef beside the same with literal values and with a
             ConfigMap: start latency and API requests. It uses the cluster --name,
             or makes one and deletes it afterwards
  presets    on such a cluster: creation of 1,000 pods in a namespace with PodPresets
             beside one without, and the memory of 10,000 presets in the API server
  inject     creation of pods that get the same by a PodPreset, by the policy that
             kubectl podenv preset convert writes, by a MutatingAdmissionPolicy that is
             written for it, and by a webhook, on an API server of its own (v1.33 and later)
  scale      --nodes nodes with 30 pods each, which KWOK simulates, on a cluster of its
             own; pods are created, 20 a second, by the stock API server, the patched one
             with gates at their defaults, with gates on, and with 100 presets of which 3
             match: processor time, also that of the added code alone, admission,
             latency, memory, size. An hour
  harness    what a user of podenv waits for: the first up, one with nothing
             changed, one after a patch was edited, a first e2e, a rebase, a push
             after a one-line edit of the kubelet, node swap, and up --stock. It uses
             a copy of the repository in _output/bench; with --cold, the copy starts
             with empty Go caches and without images

bench writes each group to _output/bench/<group>.txt in the Go benchmark format and prints
it with benchstat, which also compares two such files. A page with the tables of all
groups is in _output/report/index.html.`,
		Example: `  podenv bench
  podenv bench --only envfile --count 1
  podenv bench --only cluster --name podenv --pods 20
  podenv bench --only scale --nodes 5000 --count 2
  podenv bench --only harness --cold
  go tool benchstat before.txt _output/bench/kubelet.txt
  go tool benchstat -format csv -col /by _output/bench/envfile.txt`,
		Args: noArgs,
		RunE: a.onSeries(func(ctx context.Context, p *pipeline.Pipeline, _ []string) error {
			if err := b.check(); err != nil {
				return err
			}
			b.pipeline = p
			return a.reported(func(report *htmlreport.Run) error {
				for _, name := range b.only {
					if err := b.group(ctx, name, report); err != nil {
						return err
					}
				}
				return nil
			})
		}),
	}
	a.nameFlag(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&b.only, "only", []string{"envfile", "names", "expansion", "kubelet", "admission"}, "measure these groups")
	flags.IntVar(&b.count, "count", 6, "how many times each benchmark runs; the median counts (not for cluster, presets, inject and harness; scale takes an even number)")
	flags.IntVar(&b.pods, "pods", 50, "how many pods of each kind (cluster only)")
	flags.IntVar(&b.nodes, "nodes", 1000, "how many simulated nodes, of 30 pods each (scale only)")
	flags.BoolVar(&b.cold, "cold", false, "begin with empty caches (harness)")
	return cmd
}

type benchRun struct {
	app                *app
	pipeline           *pipeline.Pipeline
	only               []string
	count, pods, nodes int
	cold               bool
}

func (b *benchRun) check() error {
	if err := checkGroups(b.only, []string{"admission", "cluster", "envfile", "expansion", "harness", "inject", "kubelet", "names", "presets", "scale"}); err != nil {
		return err
	}
	switch {
	case b.count < 1:
		return &usageError{fmt.Errorf("--count %d: a benchmark runs 1 time or more", b.count)}
	case b.pods < 1:
		return &usageError{fmt.Errorf("--pods %d: there is 1 or more of each kind", b.pods)}
	case b.nodes < 1:
		return &usageError{fmt.Errorf("--nodes %d: there is 1 or more", b.nodes)}
	case b.count%2 > 0 && slices.Contains(b.only, "scale"):
		return &usageError{fmt.Errorf("--count %d: scale measures in one order and in the other, an even number of times", b.count)}
	case b.cold && !slices.Contains(b.only, "harness"):
		return &usageError{errors.New("--cold is about --only harness")}
	}
	return nil
}

// file is the file for the results of a group.
func (b *benchRun) file(group string) string {
	return filepath.Join(b.app.layout.Output(), "bench", group+".txt")
}

// group measures one group, prints it, and adds it to the report.
func (b *benchRun) group(ctx context.Context, name string, report *htmlreport.Run) (err error) {
	columns := "/by"
	switch name {
	case "envfile":
		err = b.inModule(ctx, name, "^Benchmark(Read|Parse)$", "200ms")
	case "names":
		err = b.inModule(ctx, name, "^Benchmark(Strict|Relaxed)$", "200ms")
	case "expansion":
		err = b.inModule(ctx, name, "^Benchmark(Expand|Keep)$", "50ms")
	case "kubelet":
		columns = ".file"
		err = b.inTree(ctx, name, "pkg/kubelet", "^BenchmarkMakeEnvironmentVariables$")
	case "admission":
		columns = ".file"
		err = b.inTree(ctx, name, "plugin/pkg/admission/podpreset", "^BenchmarkAdmission$")
	case "cluster":
		err = b.cluster(ctx, name, "./test/bench/pods", fmt.Sprintf("-pods=%d", b.pods))
	case "presets":
		err = b.cluster(ctx, name, "./test/bench/presets")
	case "inject":
		err = b.app.prove(ctx, "^TestInject$", "inject", "-podenv.bench="+b.file(name))
	case "scale":
		err = b.app.prove(ctx, "^TestScale$", "scale", "-podenv.bench="+b.file(name), fmt.Sprintf("-podenv.nodes=%d", b.nodes), fmt.Sprintf("-podenv.rounds=%d", b.count/2))
	case "harness":
		columns = ".file"
		err = b.app.prove(ctx, "^TestHarness$", "harness", "-podenv.bench="+b.file(name), fmt.Sprintf("-podenv.cold=%t", b.cold))
	}
	if err != nil {
		return err
	}
	table, err := run.Command(ctx, "go", "tool", "benchstat", "-col", columns, b.file(name)).Dir(b.app.layout.Root).Output()
	if err != nil {
		return err
	}
	fmt.Fprintf(b.app.out, "%s\n\n", table)
	m, plots, err := readMedians(b.file(name))
	if err != nil {
		return err
	}
	report.Plots = append(report.Plots, plots...)
	var text strings.Builder
	if goals := goalsOf(name, m); len(goals) > 0 {
		err = writeGoals(&text, goals, m)
	}
	report.Texts = append(report.Texts, htmlreport.Text{Title: "bench " + name, Text: strings.TrimLeft(text.String()+"\n"+table, "\n"), Table: true})
	if err != nil || text.Len() == 0 {
		return err
	}
	_, err = fmt.Fprintln(b.app.out, text.String())
	return err
}

// inModule runs benchmarks of test/bench. Its note lists the modules that they compare with.
func (b *benchRun) inModule(ctx context.Context, name, pattern, duration string) error {
	modules, err := run.Command(ctx, "go", "list", "-m", "-f={{.Path}}@{{.Version}}", "k8s.io/kubernetes", "k8s.io/apimachinery",
		"github.com/joho/godotenv", "github.com/compose-spec/compose-go/v2").Dir(b.app.layout.Root).Output()
	if err != nil {
		return err
	}
	return b.measure(ctx, name, filepath.Join(b.app.layout.Root, "test", "bench"), pattern, duration, "beside: "+strings.ReplaceAll(modules, "\n", " "))
}

// inTree runs benchmarks that the patches add to a package.
func (b *benchRun) inTree(ctx context.Context, name, pkg, pattern string) error {
	tree, err := b.pipeline.TreeAsItIs(ctx)
	if err != nil {
		return err
	}
	return b.measure(ctx, name, filepath.Join(tree.Dir, pkg), pattern, "200ms", "series: "+b.pipeline.Series.Name,
		"GOWORK=off", "GOFLAGS=-mod=readonly -trimpath", "CGO_ENABLED=0")
}

// measure compiles the tests of the package in dir and runs the benchmarks that pattern selects
// --count times. Each run has all benchmarks, so that other load on the host affects all of them
// alike. benchstat shows note, a line KEY: VALUE, above its tables.
func (b *benchRun) measure(ctx context.Context, name, dir, pattern, duration, note string, env ...string) error {
	step := b.app.reporter().Step("bench " + name)
	return step.End(func() error {
		scratch, err := os.MkdirTemp("", "podenv-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(scratch)
		binary := filepath.Join(scratch, "bench.test")
		step.Now("compiling the tests of %s", dir)
		if err := run.Command(ctx, "go", "test", "-c", "-o", binary).Dir(dir).Env(env...).Log(step.Log()).Run(); err != nil {
			return err
		}
		var all strings.Builder
		fmt.Fprintln(&all, note)
		for i := range b.count {
			step.Now("run %d of %d", i+1, b.count)
			out, err := run.Command(ctx, binary, "-test.run=^$", "-test.bench="+pattern, "-test.benchmem",
				"-test.benchtime="+duration, "-test.timeout=30m").Dir(dir).Log(step.Log()).Output()
			if err != nil {
				return err
			}
			fmt.Fprintln(&all, out)
		}
		return errors.Join(os.MkdirAll(filepath.Dir(b.file(name)), 0o755), renameio.WriteFile(b.file(name), []byte(all.String()), 0o644))
	}())
}

// cluster runs the tests of a package on the cluster --name or, if it does not exist, on a temporary one.
func (b *benchRun) cluster(ctx context.Context, group, pkg string, args ...string) error {
	c, err := b.app.cluster(ctx)
	if errors.Is(err, cluster.ErrNotFound) {
		own := *b.app
		own.name, b.pipeline.Temporary = b.app.layout.UniqueName("podenv-bench"), true
		if _, c, err = own.up(ctx, b.pipeline, cluster.Config{Name: own.name, Workers: 1, Recreate: true}, ""); err == nil {
			defer own.remove(ctx, b.pipeline.Reporter) //nolint:errcheck // the step shows it
		}
	}
	if err != nil {
		return err
	}
	step := b.pipeline.Reporter.Step("bench " + group + " " + c.Name())
	args = append([]string{"test", "-count=1", "-v", "-timeout=2h", pkg, "-args", "-kubeconfig=" + c.Kubeconfig(), "-results=" + b.file(group)}, args...)
	if err := step.End(run.Command(ctx, "go", args...).Dir(b.app.layout.Root).Log(step.Log()).Run()); err != nil {
		return err
	}
	table, err := os.ReadFile(strings.TrimSuffix(b.file(group), ".txt") + ".log")
	fmt.Fprintf(b.app.out, "%s\n", table)
	return err
}
