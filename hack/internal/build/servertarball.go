package build

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/klauspost/compress/gzip"

	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/progress"
)

// ServerTarball writes r into r.Dir as the server tarball of a Kubernetes release, under its
// usual name. `kind build node-image --type file` takes it, for example. r must have every
// component and image.
func ServerTarball(ctx context.Context, r *Result, step *progress.Step) (file string, err error) {
	if err := os.MkdirAll(filepath.Join(r.Dir, "work"), 0o755); err != nil {
		return "", err
	}
	scratch, err := os.MkdirTemp(filepath.Join(r.Dir, "work"), "server-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	step.Now("naming the images as a release does")
	files, err := serverFiles(r, scratch)
	if err != nil {
		return "", err
	}
	file = filepath.Join(r.Dir, "kubernetes-server-linux-"+runtime.GOARCH+".tar.gz")
	step.Now("packing %s", filepath.Base(file))
	return file, image.WriteFile(file, func(w io.Writer) error {
		zw, err := gzip.NewWriterLevel(contextWriter{ctx, w}, gzip.BestSpeed)
		if err != nil {
			return err
		}
		if err := image.WriteTar(files)(zw); err != nil {
			return fmt.Errorf("server tarball: %w", err)
		}
		return zw.Close()
	})
}

// contextWriter fails when its context ends.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
}

func (w contextWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.w.Write(p)
}

// serverFiles lists the tarball's files. It writes the images' archives to scratch.
func serverFiles(r *Result, scratch string) ([]image.File, error) {
	const bin = "/kubernetes/server/bin/"
	files := []image.File{{Path: "/kubernetes/version", Mode: 0o644, Data: []byte(r.Version + "\n")}}
	for _, c := range Components {
		if r.Binaries[c] == "" {
			return nil, fmt.Errorf("a server tarball needs %s: build all components first", c)
		}
		files = append(files, image.File{Path: bin + c, Mode: 0o755, Source: r.Binaries[c]})
	}
	for _, c := range ImageComponents {
		if r.Images[c] == "" {
			return nil, fmt.Errorf("a server tarball needs the image of %s: build the images first", c)
		}
		img, err := tarball.ImageFromPath(r.Images[c], nil)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", r.Images[c], err)
		}
		// A release's archives have the architecture in the repository name; kind removes it.
		archive := filepath.Join(scratch, c+".tar")
		write := func(w io.Writer) error { return image.Write(w, ImageName(c+"-"+runtime.GOARCH, r.Version), img) }
		if err := image.WriteFile(archive, write); err != nil {
			return nil, err
		}
		files = append(files,
			image.File{Path: bin + c + ".tar", Mode: 0o644, Source: archive},
			image.File{Path: bin + c + ".docker_tag", Mode: 0o644, Data: []byte(ImageTag(r.Version) + "\n")})
	}
	return files, nil
}
