package nodeimage

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// kubeadmConstants is where a release says which support images its control plane runs.
const kubeadmConstants = "cmd/kubeadm/app/constants/constants.go"

// registry is where kubeadm takes images from by default.
const registry = "registry.k8s.io"

// versions are the tags of the images that a control plane runs beside Kubernetes' own.
type versions struct {
	etcd, coreDNS, pause string
}

var versionConstant = regexp.MustCompile(`(?m)^\s*(?:const )?(DefaultEtcdVersion|CoreDNSVersion|PauseVersion)\s*=\s*"([^"]+)"`)

// readVersions reads them from the source of the release's kubeadm in treeDir. They are
// needed before kubeadm is compiled.
func readVersions(treeDir string) (versions, error) {
	file := filepath.Join(treeDir, kubeadmConstants)
	text, err := os.ReadFile(file)
	if err != nil {
		return versions{}, fmt.Errorf("reading which images kubeadm asks for: %w", err)
	}
	found := map[string]string{}
	for _, m := range versionConstant.FindAllStringSubmatch(string(text), -1) {
		found[m[1]] = m[2]
	}
	v := versions{etcd: found["DefaultEtcdVersion"], coreDNS: found["CoreDNSVersion"], pause: found["PauseVersion"]}
	if v.etcd == "" || v.coreDNS == "" || v.pause == "" {
		return versions{}, fmt.Errorf("%s: want DefaultEtcdVersion, CoreDNSVersion and PauseVersion, found %q, %q, %q", file, v.etcd, v.coreDNS, v.pause)
	}
	return v, nil
}

func (v versions) etcdImage() string    { return registry + "/etcd:" + v.etcd }
func (v versions) coreDNSImage() string { return registry + "/coredns/coredns:" + v.coreDNS }
func (v versions) pauseImage() string   { return registry + "/pause:" + v.pause }

// etcdModule is etcd's version as a module: an image's "-0" is the count of its builds.
func (v versions) etcdModule() string {
	version, _, _ := strings.Cut(v.etcd, "-")
	return "v" + version
}
