package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"podenv.dev/hack/internal/attest"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/doctor"
	"podenv.dev/hack/internal/examples"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/publish"
	"podenv.dev/hack/internal/remedy"
)

func newUp(a *app) *cobra.Command {
	var want cluster.Config
	var image, kindConfig, key string
	var again bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "From a release tag to a running cluster, with examples of env files and of a PodPreset",
		Long: `up installs what is missing, assembles and builds the patched release, builds a
kind node image, creates a cluster with the gates on, waits until it serves, and
runs examples as pods: KEP-3721's two user stories, and a PodPreset. A second run with
nothing changed only checks the cluster.

up recreates a cluster that was made from something else, or that does not serve, if it
has no namespace of yours, and nothing of yours in the namespace default. Otherwise up
says what differs, and only --recreate recreates the cluster.

With --image it makes the cluster from a node image that podenv publish has put into a
registry: nothing is assembled or compiled, and the gates are those of its series.
With --verify-images the nodes refuse to pull any image that is not signed with KEY, and
up refuses such an image of --image.`,
		Example: `  podenv up
  podenv up --name other --workers 2
  podenv up --name ha --control-planes 3 --workers 0
  podenv up --api-server-port 6443  # to be reached through a tunnel, for example
  podenv up --stock --name stock    # the release without patches
  podenv up --examples              # run the examples again
  podenv up --image registry.example.com/kubernetes/node:v1.33.13_podenv.26
  podenv up --kind-config kind.yaml # your ports, mounts, nodes and networking, and the gates
  podenv up --recreate              # lose what runs on a cluster that has to be recreated`,
		Args: noArgs,
		RunE: a.onSeries(func(ctx context.Context, p *pipeline.Pipeline, _ []string) error {
			if want.Workers < 0 {
				return &usageError{fmt.Errorf("--workers %d: a cluster has 0 or more", want.Workers)}
			}
			if err := cluster.CheckControlPlanes(want.ControlPlanes); err != nil {
				return &usageError{fmt.Errorf("--control-planes: %w", err)}
			}
			want.Name = a.name
			if image != "" && kindConfig != "" { // its release decides on what is right in the file
				if _, err := p.PublishedNode(ctx, image); err != nil {
					return err
				}
			}
			if kindConfig != "" {
				gates, err := p.Gates()
				if err == nil {
					err = want.ReadKindConfig(kindConfig, gates)
				}
				if err != nil {
					return &usageError{fmt.Errorf("--kind-config: %w", err)}
				}
			}
			verifyKey, err := loadKey(key)
			if err == nil && verifyKey != nil {
				err = checkVerification(ctx, verifyKey, want.Kind)
			}
			if err != nil {
				return &usageError{fmt.Errorf("--verify-images: %w", err)}
			}
			err = cluster.CheckPort(ctx, want.Name, want.APIServerPort)
			if err != nil && !errors.Is(err, remedy.ErrPortInUse) {
				err = &usageError{fmt.Errorf("--api-server-port: %w", err)}
			}
			if err != nil {
				return err
			}
			if key != "" {
				if image != "" { // a node cannot check the image that it runs from
					found, err := publish.Find(ctx, image, verifyKey)
					if err != nil {
						return err
					}
					image = found.Ref.String()
				}
				if want.Verifier, err = p.Verifier(ctx, key); err != nil {
					return err
				}
			}
			r, c, err := a.up(ctx, p, want, image)
			if err != nil {
				return err
			}
			switch {
			case !again && c.ExamplesRan(ctx):
				fmt.Fprintf(a.out, "The examples have run on the cluster %s. See them again with --examples.\n", a.name)
			case !p.Stock:
				if err := a.runExamples(ctx, p, c); err != nil {
					return err
				}
			}
			a.printNextSteps(p, r, c)
			return nil
		}),
	}
	a.nameFlag(cmd)
	a.stockFlag(cmd)
	cmd.Flags().IntVar(&want.ControlPlanes, "control-planes", 1, "how many control planes, with a load balancer before them: 1, 3 or 5")
	cmd.Flags().IntVar(&want.Workers, "workers", 1, "how many nodes beside the control planes")
	cmd.Flags().StringVar(&image, "image", "", "a published node image, instead of building one")
	cmd.Flags().StringVar(&kindConfig, "kind-config", "", "a file with a configuration of kind to merge with podenv's")
	cmd.Flags().StringVar(&key, "verify-images", "", "the file of a public key, in PEM, that pulled images must be signed with")
	cmd.Flags().BoolVar(&again, "examples", false, "run the examples even if nothing has changed")
	cmd.Flags().BoolVar(&want.Recreate, "recreate", false, "recreate a cluster that differs or does not serve, even if something runs on it")
	cmd.Flags().IntVar(&want.APIServerPort, "api-server-port", 0, "where the API server listens on 127.0.0.1 (default any free port)")
	return cmd
}

// checkVerification returns an error if nodes of a cluster with that configuration cannot, or must not,
// check images with key.
func checkVerification(ctx context.Context, key attest.Key, kind *v1alpha4.Cluster) error {
	if _, err := key.Sign(ctx, nil); err == nil {
		return errors.New("the key is private, and every node would get it: name the file of the public key")
	}
	if kind != nil && len(kind.ContainerdConfigPatches)+len(kind.ContainerdConfigPatchesJSON6902) > 0 {
		return errors.New("with containerdConfigPatches in --kind-config, containerd may pull without a check: leave them out")
	}
	return nil
}

// checkInotify raises the kernel's inotify limits where it may, and refuses a new cluster if they leave too few
// instances for it, before anything is built. An existing cluster needs no more of them, so it is not refused.
func (a *app) checkInotify(ctx context.Context, want cluster.Config) error {
	doctor.RaiseInotify()
	tooFew := doctor.InotifyFor(max(1, want.ControlPlanes), want.Workers)
	if tooFew == nil {
		return nil
	}
	if _, err := a.cluster(ctx); err == nil {
		return nil
	}
	return tooFew
}

// up creates the cluster from the published node image called image, or from what it builds if that is
// empty. If it fails, there is no cluster to remove.
func (a *app) up(ctx context.Context, p *pipeline.Pipeline, want cluster.Config, image string) (r *pipeline.Result, c *cluster.Cluster, err error) {
	if err := a.checkInotify(ctx, want); err != nil {
		return nil, nil, err
	}
	if image != "" {
		r, err = p.PublishedNode(ctx, image)
	} else {
		r, err = p.NodeImage(ctx)
	}
	if err == nil {
		c, err = p.Cluster(ctx, r, want)
	}
	return r, c, err
}

// runExamples runs pods that use the features, and prints the environment of their containers.
func (a *app) runExamples(ctx context.Context, p *pipeline.Pipeline, c *cluster.Cluster) error {
	step := p.Reporter.Step("examples")
	config, err := c.RESTConfig()
	if err != nil {
		return step.End(err)
	}
	results, err := examples.Run(ctx, config, c.Gates(), step)
	if err := step.End(err); err != nil {
		return err
	}
	examples.Print(a.out, results)
	return c.SaveExamplesRan(ctx)
}

// printNextSteps prints commands for the new cluster.
func (a *app) printNextSteps(p *pipeline.Pipeline, r *pipeline.Result, c *cluster.Cluster) {
	kubectl := cmp.Or(r.Build.Binaries["kubectl"], "kubectl") // the one in PATH
	if rel, err := filepath.Rel(a.layout.Root, kubectl); err == nil {
		kubectl = rel
	}
	down := "make down"
	if a.name != cluster.DefaultName {
		down += " NAME=" + a.name
	}
	kubectl += " --context " + c.Context()
	fmt.Fprintf(a.out, "\nThe cluster %s runs %s.\n  %s get pods --all-namespaces\n", a.name, r.Build.Version, kubectl)
	if !p.Stock { // a stock release does not have the field
		fmt.Fprintf(a.out, "  %s explain pod.spec.containers.env.valueFrom.fileKeyRef\n", kubectl)
	}
	fmt.Fprintf(a.out, "  %s\n", down)
}

func newDown(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Delete the cluster: no container, network or kubeconfig entry of ours is left",
		Example: `  podenv down
  podenv down --name other`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.down(cmd.Context(), a.reporter())
		},
	}
	a.nameFlag(cmd)
	return cmd
}

// down deletes the cluster. It is no error if there is none.
func (a *app) down(ctx context.Context, r *progress.Reporter) error {
	step := r.Step("down " + a.name)
	c, err := a.cluster(ctx)
	switch {
	case err == nil:
		err = c.Delete(ctx, step)
	case errors.Is(err, cluster.ErrNotFound):
		step.Cached("there is none")
		err = nil
	}
	return step.End(err)
}

// remove deletes the cluster that a verb made for itself, also after Ctrl-C, unless --keep is given.
func (a *app) remove(ctx context.Context, r *progress.Reporter) error {
	if a.keep {
		return nil
	}
	return a.down(context.WithoutCancel(ctx), r)
}
