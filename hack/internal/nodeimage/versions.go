package nodeimage

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// kubeadmConstants is the file with the versions of a release's support images.
const kubeadmConstants = "cmd/kubeadm/app/constants/constants.go"

// registry is where kubeadm takes images from by default.
const registry = "registry.k8s.io"

// versions are the tags of the images that a control plane runs besides Kubernetes' own.
type versions struct {
	etcd, coreDNS, pause string
}

var versionConstant = regexp.MustCompile(`(?m)^\s*(?:const )?(DefaultEtcdVersion|CoreDNSVersion|PauseVersion)\s*=\s*"([^"]+)"`)

// readVersions reads the versions from the source of kubeadm in treeDir, because they are
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

// etcdModule returns the version of etcd's module: the "-0" of an image counts its builds.
func (v versions) etcdModule() string {
	version, _, _ := strings.Cut(v.etcd, "-")
	return "v" + version
}
