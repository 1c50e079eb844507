package node

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/run"
)

// Build is a build of one component.
type Build struct {
	Component string
	// Binary is the absolute path of the executable.
	Binary string
	// Image is the path of an image archive with Binary, for components that run as pods.
	Image string
	// Version is what the build reports, such as "v1.33.13".
	Version string
	// SHA256 is the checksum of Binary.
	SHA256 string
}

// OpenBuild checks that an executable of a component is complete and for this machine, and
// reads its version. It does not set Image.
func OpenBuild(ctx context.Context, component, binary string) (Build, error) {
	fail := func(err error) (Build, error) {
		return Build{}, fmt.Errorf("%s is not a build of %s: %w", binary, component, err)
	}
	if err := checkExecutable(binary); err != nil {
		return fail(err)
	}
	sum, err := digest.File(binary)
	if err != nil {
		return fail(err)
	}
	out, err := run.Command(ctx, binary, "--version").Output()
	if ctx.Err() != nil {
		return Build{}, ctx.Err()
	}
	if err != nil {
		return fail(fmt.Errorf("it does not start: build it again: %w", err))
	}
	version := componentVersion.FindStringSubmatch(out)
	if version == nil {
		return fail(fmt.Errorf("--version printed %q: give the path of a %s", out, component))
	}
	return Build{Component: component, Binary: binary, Version: version[1], SHA256: sum}, nil
}

// NewBuild returns a build whose version is known, such as one that was just compiled.
func NewBuild(component, binary, image, version string) (Build, error) {
	sum, err := digest.File(binary)
	if err != nil {
		return Build{}, fmt.Errorf("%s: %w: build it with `podenv build`", component, err)
	}
	return Build{Component: component, Binary: binary, Image: image, Version: version, SHA256: sum}, nil
}

func (b Build) start(ctx context.Context, args ...string) error {
	return run.Command(ctx, b.Binary, args...).Run()
}

// componentVersion matches what Kubernetes' components print for --version.
var componentVersion = regexp.MustCompile(`^Kubernetes (v\S+)$`)

// machines are the ELF machines of the platforms that Kubernetes is released for.
var machines = map[string]elf.Machine{
	"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "arm": elf.EM_ARM,
	"386": elf.EM_386, "ppc64le": elf.EM_PPC64, "s390x": elf.EM_S390,
}

// checkExecutable returns an error unless the file is a complete ELF executable for this machine,
// which is also the nodes'. The kernel may run a truncated one until it reaches a missing page.
func checkExecutable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w: give the path of a file, stock:MINOR or patched:MINOR", err)
	}
	defer f.Close()
	if magic, err := io.ReadAll(io.LimitReader(f, int64(len(elf.ELFMAG)))); err != nil || string(magic) != elf.ELFMAG {
		return errors.Join(errors.New("it is not a Linux executable: give the path of one, stock:MINOR or patched:MINOR"), err)
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	file, err := elf.NewFile(f)
	if err != nil {
		return fmt.Errorf("it is cut off after %d bytes, or damaged: copy or build it again: %w", info.Size(), err)
	}
	if want, ok := machines[runtime.GOARCH]; ok && file.Machine != want {
		return fmt.Errorf("it is for another machine, %s: build it for %s/%s", file.Machine, runtime.GOOS, runtime.GOARCH)
	}
	for _, p := range file.Progs {
		if p.Off+p.Filesz > uint64(info.Size()) {
			return fmt.Errorf("it is cut off after %d bytes: copy or build it again", info.Size())
		}
	}
	return nil
}

// loadImage loads an image onto the node, and returns its new name.
func (t *target) loadImage(ctx context.Context, archive string) (string, error) {
	ref, open, err := retag(archive)
	if err != nil {
		return "", err
	}
	return ref.Name(), t.LoadImage(ctx, open, t.step, t.node)
}

// retag returns a tag for the image in the archive at path that is made from its content, and
// what opens the archive with that tag. Builds of one version share a tag, but a pod changes only
// if the name of its image does.
func retag(path string) (ref name.Tag, open func() (io.ReadCloser, error), err error) {
	tags, err := image.Tags(path)
	if err != nil {
		return name.Tag{}, nil, err
	}
	if len(tags) == 0 {
		return name.Tag{}, nil, fmt.Errorf("image archive %s must have one image with a tag", path)
	}
	old, err := name.NewTag(tags[0])
	if err != nil {
		return name.Tag{}, nil, fmt.Errorf("image archive %s: %w", path, err)
	}
	only, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		return name.Tag{}, nil, fmt.Errorf("reading image archive %s: %w", path, err)
	}
	id, err := only.ConfigName()
	if err != nil {
		return name.Tag{}, nil, err
	}
	ref = old.Context().Tag(fmt.Sprintf("%s-%.12s", old.TagStr(), id.Hex))
	return ref, func() (io.ReadCloser, error) {
		return image.Reader(func(w io.Writer) error { return tarball.Write(ref, only, w) }), nil
	}, nil
}
