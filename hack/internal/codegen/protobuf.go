package codegen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"podenv.dev/hack/internal/run"
)

// protobufMarker asks for protobuf definitions.
const protobufMarker = "protobuf-gen"

// protobuf generates the protobuf definitions of the touched packages, and their code.
func (p *pipeline) protobuf(ctx context.Context) (outputs, error) {
	packages := p.marked(protobufMarker, func(pkg *goPackage) bool { return p.touched[pkg.path] })
	if len(packages) == 0 {
		return nil, nil
	}
	if err := checkProtoc(); err != nil {
		return nil, err
	}
	v, err := p.view("protobuf")
	if err != nil {
		return nil, err
	}
	var files []string
	for _, pkg := range packages {
		files = append(files, path.Join(pkg.dir, "generated.pb.go"), path.Join(pkg.dir, "generated.proto"))
		if err := v.breakLinks(pkg.dir); err != nil {
			return nil, err
		}
	}
	if err := v.remove(files...); err != nil {
		return nil, err
	}
	gogo := filepath.Join(p.work, "gogo")
	if err := linkGogo(ctx, p.tree, gogo); err != nil {
		return nil, err
	}
	apimachinery, others := p.protobufPackages(packages)
	generator, err := p.goToProtobuf(ctx, v,
		"--proto-import="+gogo,
		"--proto-import="+v.path("third_party/protobuf"),
		"--apimachinery-packages="+strings.Join(apimachinery, ","),
		"--packages="+strings.Join(others, ","),
	)
	if err != nil {
		return nil, err
	}
	if err := generator.Run(); err != nil {
		return nil, fmt.Errorf("generating protobuf code: %w", err)
	}
	if err := v.checkTags(packages); err != nil {
		return nil, err
	}
	return v.collect(files...)
}

// goToProtobuf prepares the generator of protobuf code with args and those that say where it writes.
func (p *pipeline) goToProtobuf(ctx context.Context, v *view, args ...string) (*run.Cmd, error) {
	const tool = "go-to-protobuf"
	if !p.gopath {
		root := v.path(stagingRoot)
		return p.generator(ctx, v, tool, append([]string{"--output-dir=" + root, "--proto-import=" + root}, args...)...), nil
	}
	// The code says where its proto file was: under the vendor folder of k8s.io/kubernetes.
	if err := errors.Join(os.Mkdir(v.path("vendor"), 0o755), os.Symlink(v.path(stagingRoot+"k8s.io"), v.path("vendor/k8s.io"))); err != nil {
		return nil, err
	}
	main := filepath.Join(v.sources(), "k8s.io", "kubernetes")
	vendor := filepath.Join(main, "vendor")
	args = append([]string{"--output-base=" + v.sources(), "--vendor-output-base=" + vendor, "--proto-import=" + vendor}, args...)
	// go/build finds the vendor folder from $PWD, which keeps the symbolic links of the GOPATH.
	return p.generator(ctx, v, tool, args...).Dir(main).Env("PWD=" + main), nil
}

// protobufPackages returns go-to-protobuf's two lists of packages. A leading "-" marks packages
// that others refer to and that are not generated.
func (p *pipeline) protobufPackages(packages []*goPackage) (apimachinery, others []string) {
	wanted := map[string]bool{}
	for _, pkg := range packages {
		wanted[pkg.path] = true
	}
	isMachinery := map[string]bool{}
	for _, listed := range apimachineryPackages {
		name := strings.TrimLeft(listed, "+-")
		isMachinery[name] = true
		if !wanted[name] {
			listed = "-" + name
		}
		apimachinery = append(apimachinery, listed)
	}
	imported := p.importedBy(wanted)
	for _, pkg := range p.marked(protobufMarker, func(pkg *goPackage) bool { return imported[pkg.path] && !isMachinery[pkg.path] }) {
		if wanted[pkg.path] {
			others = append(others, pkg.path)
		} else {
			others = append(others, "-"+pkg.path)
		}
	}
	return apimachinery, others
}

// checkTags fails if the generator wrote protobuf tags into the types. Tags are part of the
// API: a person chooses them, and they belong in the patch that adds the field.
func (v *view) checkTags(packages []*goPackage) error {
	for _, pkg := range packages {
		sources, err := filepath.Glob(filepath.Join(v.tree, pkg.dir, "*.go"))
		if err != nil {
			return err
		}
		for _, source := range sources {
			file := path.Join(pkg.dir, filepath.Base(source))
			if !isSource(file) {
				continue
			}
			written, err := os.ReadFile(source)
			if err != nil {
				return err
			}
			tagged, err := os.ReadFile(v.path(file))
			if err != nil {
				return err
			}
			was := bytes.Split(written, []byte("\n"))
			for i, line := range bytes.Split(tagged, []byte("\n")) {
				if i >= len(was) || !bytes.Equal(line, was[i]) {
					return fmt.Errorf("%s:%d: the generator of protobuf code would make this line %q: write it so, with gofmt and the protobuf tag that every field has", file, i+1, bytes.TrimSpace(line))
				}
			}
		}
	}
	return nil
}

// linkGogo links to the module with gogo.proto, which generated.proto files import, from where protoc
// looks for it below dir.
func linkGogo(ctx context.Context, tree, dir string) error {
	const module = "github.com/gogo/protobuf"
	from, err := run.Command(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Env(goEnv...).Dir(tree).Output()
	if err != nil {
		return err
	}
	to := filepath.Join(dir, module)
	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.Symlink(from, to))
}

// checkProtoc returns an error that says how to install protoc if there is none.
func checkProtoc() error {
	if _, err := exec.LookPath("protoc"); err != nil {
		return fmt.Errorf("protobuf code needs protoc: %w; run `apt-get install protobuf-compiler`", err)
	}
	return nil
}
