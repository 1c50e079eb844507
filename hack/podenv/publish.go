package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"podenv.dev/hack/internal/attest"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/publish"
	"podenv.dev/hack/internal/remedy"
)

func newPublish(a *app) *cobra.Command {
	var r publish.Registry
	var keyFile string
	var platforms []string
	var dryRun bool
	var format *string
	cmd := &cobra.Command{
		Use:   "publish --registry HOST/PATH [image]...",
		Short: "Put the images of a series into a registry, with bills of materials and provenance",
		Long: `publish builds what is missing and puts into the registry the images that kubeadm
asks for, each for every one of --platforms, and the node image of this machine's
architecture, from which podenv up --image makes clusters. Arguments choose some of
the images. To each it attaches a bill of materials (SPDX) and a statement of its
provenance (in-toto), signed with --key, which podenv verify checks.

Credentials are those of docker login. Only what the registry lacks is sent. Tags come
last: an interrupted publish has published nothing. A tag that exists with another
digest is an error without --force.`,
		Example: `  podenv publish --registry registry.example.com/kubernetes --key cosign.key
  podenv publish --registry localhost:5000/k8s --platforms linux/amd64
  podenv publish --registry localhost:5000/k8s kube-scheduler node
  podenv publish --registry registry.example.com/kubernetes --dry-run`,
		RunE: func(cmd *cobra.Command, names []string) error {
			write, err := rowWriter(*format, writePublishedTable, writePublishedTSV)
			if err != nil {
				return err
			}
			if err := r.Validate(); err != nil {
				return &usageError{fmt.Errorf("--registry: %w", err)}
			}
			if err := checkComponents(pipeline.PublishedNames, names...); err != nil {
				return err
			}
			if i := slices.IndexFunc(platforms, func(p string) bool { return !slices.Contains(pipeline.PublishedPlatforms, p) }); i >= 0 {
				return &usageError{fmt.Errorf("--platforms %s: choose from %s", platforms[i], strings.Join(pipeline.PublishedPlatforms, ", "))}
			}
			if r.Key, err = loadKey(keyFile); err != nil {
				return err
			}
			p, err := a.pipeline()
			if err != nil {
				return err
			}
			images, provenance, err := p.Published(cmd.Context(), platforms, names)
			if err != nil {
				return err
			}
			if len(images) == 0 {
				return &usageError{fmt.Errorf("the node image is of this machine's architecture, which is not among --platforms %s", strings.Join(platforms, ","))}
			}
			r.Provenance = provenance
			if dryRun {
				rows, err := r.Plan(images)
				if err != nil {
					return err
				}
				return write(a.out, rows)
			}
			step := p.Reporter.Step("publish")
			rows, err := r.Push(cmd.Context(), images, step)
			if err := step.End(err); err != nil {
				return err
			}
			return write(a.out, rows)
		},
	}
	a.stockFlag(cmd)
	format = outputFlag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&r.Path, "registry", "", "where to: HOST/PATH")
	flags.StringVar(&keyFile, "key", "", "the file of the private key, in PEM, that signs the statements")
	flags.StringSliceVar(&platforms, "platforms", pipeline.PublishedPlatforms, "which platforms to build the images for")
	flags.BoolVar(&dryRun, "dry-run", false, "build, and print what would go where")
	flags.BoolVar(&r.Force, "force", false, "move tags that exist with another digest")
	return cmd
}

// loadKey reads the key in file, or returns nil for an empty name.
func loadKey(file string) (*attest.Key, error) {
	if file == "" {
		return nil, nil
	}
	return attest.LoadKey(file)
}

func writePublishedTable(w io.Writer, rows []publish.Row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "REFERENCE\tPLATFORMS\tMB\tSTATE\tDIGEST")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%.1f\t%s\t%s\n", r.Reference, r.Platforms, float64(r.Bytes)/1e6, r.State, r.Digest)
	}
	return t.Flush()
}

func writePublishedTSV(w io.Writer, rows []publish.Row) error {
	for _, r := range rows {
		if _, err := fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", r.Reference, r.Platforms, r.Bytes, r.State, r.Digest); err != nil {
			return err
		}
	}
	return nil
}

func newVerify(a *app) *cobra.Command {
	var keyFile string
	var rebuild bool
	cmd := &cobra.Command{
		Use:   "verify REF",
		Short: "Check the signature, the provenance and the content of a published image",
		Long: `verify reads an image that podenv publish has put into a registry. It checks that
its statement of provenance is about this image and signed with --key, and that every
layer has the digest that the image names. It asks the image's registry and nobody
else. With --rebuild it builds the image again, from the release's modules and pinned
packages with empty caches, and compares the digests: then nobody needs to be trusted.
This repository must be at the commit that the statement names.

Exit status: 0, or 1 if the image is not what it says.`,
		Example: `  podenv verify registry.example.com/kubernetes/kube-scheduler:v1.33.13_podenv.26 --key cosign.pub
  podenv verify registry.example.com/kubernetes/node:v1.33.13_podenv.26 --rebuild`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &usageError{fmt.Errorf("verify takes one image, got %q: see podenv verify --help", args)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := loadKey(keyFile)
			if err != nil {
				return err
			}
			reporter := a.reporter()
			step := reporter.Step("verify")
			found, err := publish.Find(cmd.Context(), args[0], key)
			if err == nil {
				err = found.Read(cmd.Context(), step)
			}
			if err := step.End(err); err != nil {
				return err
			}
			signature := "not checked; name the public key with --key"
			if key != nil {
				signature = "good"
			}
			fmt.Fprintf(a.out, "image      %s\nplatforms  %s\nsignature  %s\nbuilt from %s, series %s, release %s\nbuilt with %s\n", found.Ref,
				strings.Join(slices.Sorted(maps.Keys(found.Platforms)), ", "), signature, found.Provenance.Version, found.Provenance.Series, found.Provenance.Release, found.Provenance.Go)
			for _, d := range found.Provenance.Dependencies {
				if commit := d.Digest["gitCommit"]; commit != "" {
					fmt.Fprintf(a.out, "commit     %s\n", commit)
				}
			}
			if !rebuild {
				return nil
			}
			return a.rebuild(cmd.Context(), found)
		},
	}
	cmd.Flags().StringVar(&keyFile, "key", "", "the file of the public key, in PEM, that the statement must be signed with")
	cmd.Flags().BoolVar(&rebuild, "rebuild", false, "build the image again and compare; this takes as long as a first build")
	return cmd
}

// rebuild builds the image found again and compares them.
func (a *app) rebuild(ctx context.Context, found *publish.Published) error {
	a.series, a.stock = found.Provenance.Series, found.Provenance.Stock
	p, err := a.pipeline()
	if err != nil {
		return err
	}
	if err := p.SameInputs(ctx, *found.Provenance); err != nil {
		return err
	}
	repository := found.Ref.RepositoryStr()
	name := repository[strings.LastIndex(repository, "/")+1:]
	images, done, err := p.Rebuild(ctx, slices.Sorted(maps.Keys(found.Platforms)), []string{name})
	if err != nil {
		return err
	}
	defer done()
	if len(images) != 1 {
		return fmt.Errorf("podenv builds no image %s", name)
	}
	diff, err := found.Difference(images[0])
	if err != nil {
		return err
	}
	if diff != "" {
		return fmt.Errorf("%s is not what this repository builds: %s", found.Ref, diff)
	}
	fmt.Fprintln(a.out, "rebuilt    the same digest: this image is what it says")
	return nil
}

// verifyBuild builds the images called names, or all, twice, and compares them.
func (a *app) verifyBuild(ctx context.Context, p *pipeline.Pipeline, names []string) error {
	platform := []string{"linux/" + runtime.GOARCH}
	first, _, err := p.Published(ctx, platform, names)
	if err != nil {
		return err
	}
	second, done, err := p.Rebuild(ctx, platform, names)
	if err != nil {
		return err
	}
	defer done()
	differ := false
	for i, image := range first {
		diff, err := publish.Difference(image, second[i])
		if err != nil {
			return err
		}
		index, err := image.Index()
		if err != nil {
			return err
		}
		hash, err := index.Digest()
		if err != nil {
			return err
		}
		if diff == "" {
			diff = "equal"
		}
		differ = differ || diff != "equal"
		fmt.Fprintf(a.out, "%s\t%s\t%s\n", image.Name, hash, diff)
	}
	if differ {
		return remedy.New(fmt.Errorf("two builds of the same inputs differ"), "the lines say in which file; both were built on this machine, so their time, folder or order is in it")
	}
	return nil
}
