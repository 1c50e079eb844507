//go:build linux

package kubelet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/envfile"
	"k8s.io/utils/ptr"
)

func kubeletWithEnvFiles(tb testing.TB) *Kubelet {
	featuregatetesting.SetFeatureGateDuringTest(tb, utilfeature.DefaultFeatureGate, features.EnvFiles, true)
	return &Kubelet{podWorkers: &fakePodWorkers{}}
}

// envFilesOf returns the env files of one start of the pod's container, in the volume
// config at root.
func envFilesOf(kl *Kubelet, pod *v1.Pod, container *v1.Container, root string) *containerEnvFiles {
	return kl.newEnvFiles(pod, container, mountedAt(root), envfile.DotEnv)
}

func TestEnvFileValues(t *testing.T) {
	const secret = "s3cr3t"
	for _, tc := range []struct {
		name      string
		noVolume  bool
		syntax    envfile.Syntax
		path      string // config.env if empty
		file      string // none if empty
		optional  bool
		want      string
		notSet    bool
		wantError []string // parts of it
	}{
		{name: "the last definition wins", syntax: envfile.SingleQuoted, file: "K='1'\nK='2'\n", want: "2"},
		{name: "an empty value is a value", syntax: envfile.SingleQuoted, file: "K=''\n", want: ""},
		{name: "a path from the root of the volume", path: "/config.env", syntax: envfile.SingleQuoted, file: "K='1'\n", want: "1"},
		{name: "the form of v1.34", syntax: envfile.DotEnv, file: "K = 1\n", want: "1"},
		{name: "the form of another minor", syntax: envfile.SingleQuoted, file: "K=" + secret + "\n",
			wantError: []string{`variable "V" of container "main" from key "K" of env file "config.env" in volume "config": couldn't parse env file: line 1: `, "VAR='value'"}},
		{name: "the whole file is read", syntax: envfile.SingleQuoted, file: "K='1'\n" + secret + "\n", optional: true,
			wantError: []string{`couldn't parse env file: line 2: `}},
		{name: "a missing key", syntax: envfile.SingleQuoted, file: "X='" + secret + "'\n",
			wantError: []string{`of env file "config.env" in volume "config": environment variable key "K" not found in file: `}},
		{name: "an optional missing key", syntax: envfile.SingleQuoted, file: "X='1'\n", optional: true, notSet: true},
		{name: "a missing file", syntax: envfile.SingleQuoted,
			wantError: []string{`of env file "config.env" in volume "config": couldn't parse env file: the file does not exist`}},
		{name: "an optional missing file", syntax: envfile.SingleQuoted, optional: true, notSet: true},
		{name: "a volume that nothing mounts", noVolume: true,
			wantError: []string{`of env file "config.env" in volume "config": cannot find the volume "config" referenced by FileKeyRef: `}},
		{name: "an optional file in a volume that nothing mounts", noVolume: true, optional: true, notSet: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := t.TempDir()
			if tc.file != "" {
				require.NoError(t, os.WriteFile(filepath.Join(root, "config.env"), []byte(tc.file), 0o600))
			}
			volumes := mountedAt(root)
			if tc.noVolume {
				volumes = kubecontainer.VolumeMap{}
			}
			path := tc.path
			if path == "" {
				path = "config.env"
			}
			env := fileKeyRef("V", "config", path, "K", func(selector *v1.FileKeySelector) { selector.Optional = ptr.To(tc.optional) })

			value, isSet, err := valueWithin(t, kubeletWithEnvFiles(t).newEnvFiles(&v1.Pod{}, &v1.Container{Name: "main", Env: []v1.EnvVar{env}}, volumes, tc.syntax), &env)

			if len(tc.wantError) == 0 {
				require.NoError(t, err)
				assert.Equal(t, tc.want, value)
				assert.Equal(t, !tc.notSet, isSet)
				return
			}
			require.Error(t, err)
			for _, part := range tc.wantError {
				assert.ErrorContains(t, err, part)
			}
			assert.NotContains(t, err.Error(), secret)
			assert.NotContains(t, err.Error(), root)
		})
	}
}

// From the root of the volume too.
func TestPathWithASlashIsTheSameFile(t *testing.T) {
	root := volumeOf(t, map[string]string{"config.env": "K=1\n"})
	container := &v1.Container{Env: []v1.EnvVar{fileKeyRef("A", "config", "config.env", "K"), fileKeyRef("B", "config", "/./config.env", "K")}}
	start := startEnvFiles(t, root, container)
	for i := range container.Env {
		value, _, err := valueWithin(t, start, &container.Env[i])
		require.NoError(t, err)
		assert.Equal(t, "1", value)
		require.NoError(t, os.WriteFile(filepath.Join(root, "config.env"), []byte("K=2\n"), 0o600))
	}
}

func TestEnvFileWithAKeyThatNoneCanHave(t *testing.T) {
	for _, tweaks := range [][]func(*v1.FileKeySelector){nil, {optional}} {
		env := fileKeyRef("V", "config", "config.env", strings.Repeat("K", 1_000_000), tweaks...)
		_, isSet, err := valueWithin(t, startEnvFiles(t, t.TempDir(), &v1.Container{Env: []v1.EnvVar{env}}), &env)
		require.ErrorContains(t, err, "exceeds maximum length of 128 characters")
		assert.False(t, isSet)
		assert.Less(t, len(err.Error()), 1024)
	}
}
