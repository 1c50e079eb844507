package nodeimage

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// kubeadmConstants is where a release says which support images its control plane runs.
const kubeadmConstants = "cmd/kubeadm/app/constants/constants.go"

// registry is where kubeadm takes images from unless it is told otherwise.
const registry = "registry.k8s.io"

// versions are the tags of the images that a control plane runs beside Kubernetes' own.
type versions struct {
	etcd, coreDNS, pause string
}

// readVersions reads them from the source of the release's kubeadm in treeDir.
func readVersions(treeDir string) (versions, error) {
	file := filepath.Join(treeDir, kubeadmConstants)
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return versions{}, fmt.Errorf("reading which images kubeadm asks for: %w", err)
	}
	found := stringConstants(parsed)
	v := versions{etcd: found["DefaultEtcdVersion"], coreDNS: found["CoreDNSVersion"], pause: found["PauseVersion"]}
	if v.etcd == "" || v.coreDNS == "" || v.pause == "" {
		return versions{}, fmt.Errorf("%s: want DefaultEtcdVersion, CoreDNSVersion and PauseVersion, found %q, %q, %q", file, v.etcd, v.coreDNS, v.pause)
	}
	return v, nil
}

// stringConstants are the file's constants that are written as one string.
func stringConstants(file *ast.File) map[string]string {
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if i >= len(spec.Values) {
				break
			}
			if lit, ok := spec.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if value, err := strconv.Unquote(lit.Value); err == nil {
					found[name.Name] = value
				}
			}
		}
		return true
	})
	return found
}

func (v versions) etcdImage() string    { return registry + "/etcd:" + v.etcd }
func (v versions) coreDNSImage() string { return registry + "/coredns/coredns:" + v.coreDNS }
func (v versions) pauseImage() string   { return registry + "/pause:" + v.pause }

// etcdModule is etcd's version as a module: an image's "-0" is the count of its builds.
func (v versions) etcdModule() string {
	version, _, _ := strings.Cut(v.etcd, "-")
	return "v" + version
}
