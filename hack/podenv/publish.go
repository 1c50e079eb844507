package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"podenv.dev/hack/internal/attest"
	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/packages"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/publish"
)

func newPublish(a *app) *cobra.Command {
	var r publish.Registry
	var keyFile string
	var platforms []string
	cmd := &cobra.Command{
		Use:   "publish --registry HOST/PATH [image]...",
		Short: "Put the images of a series into a registry, with bills of materials and provenance",
		Long: `publish builds and puts into the registry the images that kubeadm asks for, for each of
--platforms, and the node image of this machine's architecture, for podenv up --image.
Arguments choose some of ` + strings.Join(pipeline.PublishedNames, ", ") + `.
To each it attaches a bill of materials (SPDX) and a statement of its provenance
(in-toto), signed with --key, which podenv verify checks.

Credentials are those of docker login. Only what the registry lacks is sent. Tags come
last: an interrupted publish has published nothing, or whole images alone.`,
		Example: `  podenv publish --registry registry.example.com/kubernetes --key key.pem
  podenv publish --registry localhost:5000/k8s --platforms linux/amd64 node
  podenv publish --registry registry.example.com/kubernetes --dry-run`,
		RunE: a.onSeries(func(ctx context.Context, p *pipeline.Pipeline, names []string) (err error) {
			if _, err := r.Tag("x", "x"); err != nil {
				return &usageError{fmt.Errorf("--registry: %w", err)}
			}
			if err := errors.Join(checkWords(unknownComponent, pipeline.PublishedNames, names...), checkWords("--platforms", pipeline.PublishedPlatforms, platforms...)); err != nil {
				return err
			}
			if keyFile != "" {
				if r.Key, err = attest.LoadSigner(ctx, keyFile); err != nil {
					return err
				}
			}
			// A registry that refuses one refuses them before the minutes that it takes to build them.
			if err := r.Check(ctx, append(names, pipeline.PublishedNames...)[0]); err != nil {
				return err
			}
			if r.Provenance, err = p.Provenance(ctx); err != nil {
				return err
			}
			images, err := p.Published(ctx, platforms, names)
			if err != nil {
				return err
			}
			step := p.Reporter.Step("publish")
			rows, err := r.Push(ctx, images, step)
			if err := step.End(err); err != nil {
				return err
			}
			return writeColumns(a, "REFERENCE\tPLATFORMS\tBYTES\tSTATE\tDIGEST", rows,
				func(r publish.Row) []any { return []any{r.Reference, r.Platforms, r.Bytes, r.State, r.Digest} })
		}),
	}
	a.stockFlag(cmd)
	a.outputFlag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&r.Path, "registry", "", "where to: HOST/PATH")
	flags.StringVar(&keyFile, "key", "", "the file of the private key, in PEM, that signs the statements")
	flags.StringSliceVar(&platforms, "platforms", pipeline.PublishedPlatforms, "which platforms to build the images for")
	flags.BoolVar(&r.DryRun, "dry-run", false, "build, and print what would go where")
	flags.BoolVar(&r.Force, "force", false, "move tags that exist with another digest")
	return cmd
}

// loadKey reads the key in file, or returns nil for an empty name.
func loadKey(file string) (attest.Key, error) {
	if file == "" {
		return nil, nil
	}
	return attest.LoadKey(file)
}

func newVerify(a *app) *cobra.Command {
	var keyFile string
	var rebuild bool
	cmd := &cobra.Command{
		Use:   "verify REF",
		Short: "Check the signature, the provenance and the content of a published image",
		Long: `verify reads an image that podenv publish has put into a registry. It checks that
its statement of provenance is about this image and signed with --key, and that layers and
configurations have the digests that the image names. It asks nobody but the image's registry.
With --rebuild it builds the image again, from the release's modules and pinned
packages with empty caches, and compares: then nobody needs to be trusted.`,
		Example: `  podenv verify registry.example.com/kubernetes/node:v1.33.13_podenv.26 --key key.pub
  podenv verify registry.example.com/kubernetes/node:v1.33.13_podenv.26 --rebuild`,
		Args: takes(1, "one image"),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := loadKey(keyFile)
			if err != nil {
				return err
			}
			step := a.reporter().Step("verify")
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
			platforms, from := slices.Sorted(maps.Keys(found.Platforms)), found.Provenance
			fmt.Fprintf(a.out, "image      %s\nplatforms  %s\nsignature  %s\nbuilt from %s, series %s, commit %s, with %s\n",
				found.Ref, strings.Join(platforms, ", "), signature, from.Version, from.Series, cmp.Or(from.Commit, "unknown"), from.Go)
			if !rebuild {
				return nil
			}
			of := *a
			of.series, of.stock = from.Series, from.Stock
			p, err := of.pipeline()
			if err != nil {
				return err
			}
			if err := p.SameInputs(cmd.Context(), *from); err != nil {
				return err
			}
			name := path.Base(found.Ref.RepositoryStr())
			if err := checkWords(unknownComponent, pipeline.PublishedNames, name); err != nil {
				return err
			}
			return p.Rebuild(cmd.Context(), platforms, []string{name}, func(images []publish.Image) error {
				diff, err := found.Difference(images[0])
				if err == nil && diff != "" {
					err = fmt.Errorf("%s is not what this repository builds: %s", found.Ref, diff)
				}
				if err == nil {
					fmt.Fprintf(a.out, "rebuilt    equal: this is %s:%s\n", images[0].Name, images[0].Tag) // a tag may be moved
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&keyFile, "key", "", "the file of the public key, in PEM, that the statement must be signed with")
	cmd.Flags().BoolVar(&rebuild, "rebuild", false, "build the image again and compare; this takes as long as a first build")
	return cmd
}

// verifyBuild builds the images called names, or all, twice, and compares them.
func (a *app) verifyBuild(ctx context.Context, p *pipeline.Pipeline, names []string) error {
	platform := []string{"linux/" + runtime.GOARCH}
	first, err := p.Published(ctx, platform, names)
	if err != nil {
		return err
	}
	return p.Rebuild(ctx, platform, names, func(second []publish.Image) (differ error) {
		for i, image := range first {
			diff, err := publish.Difference(image.Platforms, second[i].Platforms)
			if err != nil {
				return err
			}
			if diff != "" {
				differ = errors.New("two builds of the same inputs differ: time, folder, order or the number of processors is in what the lines name")
			}
			fmt.Fprintf(a.out, "%s\t%s\n", image.Name, cmp.Or(diff, "equal"))
		}
		return differ
	})
}

func newPackages(a *app) *cobra.Command {
	var to string
	var platforms []string
	cmd := &cobra.Command{
		Use:   "packages",
		Short: "Make Debian and RPM packages of kubelet, kubeadm and kubectl",
		Long: `packages compiles the tree as it is, your edits included, and makes packages of ` + strings.Join(packages.Components, ", ") + `
with the units of systemd, for nodes that kubeadm sets up. They replace those of pkgs.k8s.io: the
version 1.33.13+podenv.25-1 follows 1.33.13-1.1 and precedes 1.33.14-1.1.

The paths of the packages are printed; the file ` + packages.Sums + ` beside them has their digests.
Equal programs give equal packages.`,
		Example: `  podenv packages
  podenv packages --platforms linux/amd64,linux/arm64 --to dist
  podenv packages --stock           # the release without patches
  apt-get install $(podenv packages | grep deb$)`,
		Args: noArgs,
		RunE: a.onSeries(func(ctx context.Context, p *pipeline.Pipeline, _ []string) error {
			if err := checkWords("--platforms", pipeline.PublishedPlatforms, platforms...); err != nil {
				return err
			}
			t, err := p.TreeAsItIs(ctx)
			if err != nil {
				return err
			}
			_, date, err := t.Release(ctx)
			if err != nil {
				return err
			}
			var builds []*build.Result
			for _, platform := range platforms {
				b, err := p.Binaries(ctx, t, platform, packages.Components)
				if err != nil {
					return err
				}
				builds = append(builds, b)
			}
			if to == "" {
				to = filepath.Join(a.layout.Build(t.Name()), "packages")
				if err := os.RemoveAll(to); err != nil { // those of another version
					return err
				}
			}
			step := p.Reporter.Step("packages")
			paths, err := packages.Build(ctx, a.layout, builds, date, to, step)
			if err := step.End(err); err != nil {
				return err
			}
			for _, path := range paths {
				fmt.Fprintln(a.out, path)
			}
			return nil
		}),
	}
	a.stockFlag(cmd)
	cmd.Flags().StringVar(&to, "to", "", "the folder to write to (default _output/build/<series>/packages)")
	cmd.Flags().StringSliceVar(&platforms, "platforms", []string{"linux/" + runtime.GOARCH}, "which platforms to make packages for")
	return cmd
}
