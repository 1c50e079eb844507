package proof

import (
	"errors"
	"path/filepath"

	"golang.org/x/mod/semver"
)

// policyVersions are the versions of MutatingAdmissionPolicy, each with the first minor whose API
// server has it.
var policyVersions = [][2]string{{"v1.36", "v1"}, {"v1.34", "v1beta1"}, {"v1.33", "v1alpha1"}}

// policies has an API server judge pods by PodPresets and by the policies that `kubectl podenv
// preset convert` writes of them.
func policies(c *check) error {
	etcd, err := etcdProgram()
	if err != nil {
		return err
	}
	for _, v := range policyVersions {
		if semver.Compare(built.value.Tree.Series.Name, v[0]) >= 0 {
			return c.countGoTest(repo.Root, []string{
				"KUBE_APISERVER=" + built.value.Build.Binaries["kube-apiserver"], "ETCD=" + etcd, "POLICY_VERSION=" + v[1],
			}, "-run=^TestPolicyInjectsAsThePreset$", "./test/bench/inject")
		}
	}
	return skipped(built.value.Tree.Series.Name + " has no MutatingAdmissionPolicy that was tried")
}

// etcdProgram returns etcd, of any version, as it was built for a node image.
func etcdProgram() (string, error) {
	built, err := filepath.Glob(filepath.Join(repo.Cache("support"), "bin", "*-etcd-*"))
	if err != nil {
		return "", err
	}
	if len(built) == 0 {
		return "", errors.New("no program of etcd is beside the images of the cluster")
	}
	return built[len(built)-1], nil
}
