package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/source"
	"podenv.dev/hack/internal/tekton"
	runs "podenv.dev/test/tekton"
)

func newTekton(a *app) *cobra.Command {
	var remove, again bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "tekton",
		Short: "Build Tekton Pipelines, run it on the cluster, and show TEP-0101's examples",
		Long: `tekton assembles and builds the patched Tekton Pipelines, loads its images onto the
nodes of a cluster that podenv up has made, applies the release's own manifests and
waits until the webhook serves. Then it runs the examples of TEP-0101 as TaskRuns and
PipelineRuns and prints the environment that each step saw. A second run with nothing
changed only checks.

The newest series of Tekton is used, or the one that --series names.`,
		Example: `  podenv tekton
  podenv tekton --name other
  podenv tekton --stock             # the release without patches
  podenv tekton --examples          # run the examples again
  podenv tekton --delete            # with all its TaskRuns and PipelineRuns`,
		Args: noArgs,
		RunE: a.onCluster(func(ctx context.Context, c *cluster.Cluster, _ []string) error {
			p, err := a.tektonPipeline()
			if err != nil {
				return err
			}
			t, err := p.Tree(ctx, source.Options{KeepEdits: true})
			if err != nil {
				return err
			}
			config, err := c.RESTConfig()
			if err != nil {
				return err
			}
			on, err := tekton.NewInstallation(config)
			if err != nil {
				return err
			}
			on.Timeout = timeout
			unbuilt := &tekton.Release{Version: p.Series.Release, Tree: t}
			// Fail before minutes of building.
			if _, err := on.Check(ctx, unbuilt); err != nil {
				return err
			}
			if remove {
				step := p.Reporter.Step("delete Tekton")
				return step.End(on.Delete(ctx, unbuilt, step))
			}
			step := p.Reporter.Step("Tekton build")
			r, err := tekton.Build(ctx, a.layout, t, step)
			if err := step.End(err); err != nil {
				return err
			}
			step = p.Reporter.Step("Tekton on " + a.name)
			installed, err := a.installTekton(ctx, on, c, r, step)
			if err := step.End(err); err != nil {
				return err
			}
			if installed && !again {
				fmt.Fprintf(a.out, "Tekton %s runs on the cluster %s, as before. See the examples again with --examples.\n", r.Version, a.name)
				return nil
			}
			client, err := runs.NewClient(config, metav1.NamespaceDefault)
			if err != nil {
				return err
			}
			return a.runTektonExamples(ctx, client, p)
		}),
	}
	a.nameFlag(cmd)
	a.stockFlag(cmd)
	cmd.Flags().BoolVar(&remove, "delete", false, "remove Tekton from the cluster")
	cmd.Flags().BoolVar(&again, "examples", false, "run the examples even if nothing has changed")
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "how long the webhook may take until it serves")
	return cmd
}

// installTekton installs r on the cluster, and reports whether it already ran there.
func (a *app) installTekton(ctx context.Context, on *tekton.Installation, c *cluster.Cluster, r *tekton.Release, step *progress.Step) (before bool, err error) {
	if before, err = on.Check(ctx, r); err != nil {
		return false, err
	}
	if before {
		step.Cached(r.Version + " serves")
		return true, nil
	}
	var archives []string
	for _, program := range tekton.Programs {
		archives = append(archives, r.Archives[program])
	}
	if err := c.LoadImages(ctx, archives, step); err != nil {
		return false, err
	}
	return false, on.Install(ctx, r, step)
}

// runTektonExamples runs the examples that do not change the cluster's configuration, one after
// the other, and prints the environment of their steps.
func (a *app) runTektonExamples(ctx context.Context, client *runs.Client, p *pipeline.Pipeline) error {
	for _, example := range runs.Examples {
		if example.Defaults != nil {
			continue
		}
		step := p.Reporter.Step("TEP-0101: " + example.Name)
		steps, err := example.Run(ctx, client, "v1")
		if err := step.End(err); err != nil {
			return err
		}
		runs.Print(a.out, example, steps)
	}
	return nil
}

// tektonPipeline returns the pipeline of the Tekton series --series, by default of the newest.
func (a *app) tektonPipeline() (*pipeline.Pipeline, error) {
	if series.IsTekton(a.series) {
		return a.pipeline()
	}
	all := series.All(a.layout)
	if len(all) == 0 || !series.IsTekton(all[len(all)-1]) {
		return nil, errors.New("patches/tekton has no series: make one with `podenv rebase`")
	}
	newest := *a
	newest.series = all[len(all)-1]
	return newest.pipeline()
}
