//go:build linux

/*
Copyright 2026 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
	"k8s.io/kubernetes/pkg/kubelet/configmap"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	"k8s.io/utils/ptr"
)

func fileKeyRef(name, volume, path, key string, tweaks ...func(*v1.FileKeySelector)) v1.EnvVar {
	selector := &v1.FileKeySelector{VolumeName: volume, Path: path, Key: key}
	for _, tweak := range tweaks {
		tweak(selector)
	}
	return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{FileKeyRef: selector}}
}

// podWithEmptyDirs returns a static pod, which waits for no services.
func podWithEmptyDirs(volumes ...string) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{kubetypes.ConfigSourceAnnotationKey: kubetypes.FileSource}},
		Spec:       v1.PodSpec{EnableServiceLinks: ptr.To(false)},
	}
	for _, name := range volumes {
		pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{
			Name:         name,
			VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}},
		})
	}
	return pod
}

func optional(selector *v1.FileKeySelector) { selector.Optional = ptr.To(true) }

func TestMakeEnvironmentVariablesFromFiles(t *testing.T) {
	const secret = "s3cr3t"
	files := map[string]string{
		"config.env":     "FIRST=1\nEMPTY=\nTWICE=old\nTWICE=new\nREFERENCE=$(FIRST)\n",
		"relaxed.env":    "9 lives=" + secret + "\n",
		"dir/nested.env": "NESTED=yes\n",
		"broken.env":     "FIRST=1\n" + secret + " is not a declaration\n",
	}
	testCases := []struct {
		name         string
		disabled     bool
		relaxedNames bool
		env          []v1.EnvVar
		want         []kubecontainer.EnvVar
		wantError    []string // parts of it
	}{
		{
			name: "several keys of one file",
			env: []v1.EnvVar{
				fileKeyRef("A", "config", "config.env", "FIRST"),
				fileKeyRef("B", "config", "config.env", "TWICE"),
				fileKeyRef("C", "config", "config.env", "EMPTY"),
			},
			want: []kubecontainer.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "new"}, {Name: "C", Value: ""}},
		},
		{
			name: "a file in a directory and the same key twice",
			env: []v1.EnvVar{
				fileKeyRef("A", "config", "dir/nested.env", "NESTED"),
				fileKeyRef("B", "config", "dir/nested.env", "NESTED"),
			},
			want: []kubecontainer.EnvVar{{Name: "A", Value: "yes"}, {Name: "B", Value: "yes"}},
		},
		{
			name:      "a path and a name that are too long to be shown",
			env:       []v1.EnvVar{fileKeyRef(strings.Repeat("A", 100_000), "config", strings.Repeat("x", 100_000), "KEY")},
			wantError: []string{`variable "` + strings.Repeat("A", 253) + `..."`, `env file "` + strings.Repeat("x", 253) + `..." in volume`},
		},
		{
			name: "over an earlier variable of that name",
			env: []v1.EnvVar{
				{Name: "A", Value: "literal"}, fileKeyRef("A", "config", "config.env", "FIRST"),
				{Name: "B", Value: "literal"}, fileKeyRef("B", "config", "config.env", "MISSING", optional),
			},
			want: []kubecontainer.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "literal"}},
		},
		{
			name: "a value of a file is not expanded, but can be referred to",
			env: []v1.EnvVar{
				fileKeyRef("A", "config", "config.env", "REFERENCE"),
				fileKeyRef("B", "config", "config.env", "FIRST"),
				{Name: "C", Value: "$(A) $(B)"},
			},
			want: []kubecontainer.EnvVar{{Name: "A", Value: "$(FIRST)"}, {Name: "B", Value: "1"}, {Name: "C", Value: "$(FIRST) 1"}},
		},
		{
			name: "what is missing and optional is not set",
			env: []v1.EnvVar{
				fileKeyRef("A", "config", "config.env", "MISSING", optional),
				fileKeyRef("B", "config", "missing.env", "FIRST", optional),
				fileKeyRef("C", "unwritten", "config.env", "FIRST", optional),
				fileKeyRef("D", "config", "config.env", "FIRST", optional),
			},
			want: []kubecontainer.EnvVar{{Name: "D", Value: "1"}},
		},
		{
			name:      "missing key",
			env:       []v1.EnvVar{fileKeyRef("A", "config", "config.env", "MISSING")},
			wantError: []string{`container "main"`, `variable "A"`, `key "MISSING"`, `env file "config.env"`, `volume "config"`, "does not define the key"},
		},
		{
			name:      "missing file",
			env:       []v1.EnvVar{fileKeyRef("A", "config", "missing.env", "FIRST")},
			wantError: []string{`env file "missing.env"`, "does not exist"},
		},
		{
			name:      "volume that nothing has written",
			env:       []v1.EnvVar{fileKeyRef("A", "unwritten", "config.env", "FIRST")},
			wantError: []string{`volume "unwritten"`, "does not exist"},
		},
		{
			name:      "a broken line after the key, though optional",
			env:       []v1.EnvVar{fileKeyRef("A", "config", "broken.env", "FIRST", optional)},
			wantError: []string{`env file "broken.env"`, "line 2: "},
		},
		{
			name:      "a directory, though optional",
			env:       []v1.EnvVar{fileKeyRef("A", "config", "dir", "FIRST", optional)},
			wantError: []string{"regular file"},
		},
		{
			name:      "a name that is not allowed",
			env:       []v1.EnvVar{fileKeyRef("A", "config", "relaxed.env", "9 lives")},
			wantError: []string{"line 1: ", "not a valid environment variable name"},
		},
		{
			name:         "a name that only relaxed validation allows",
			relaxedNames: true,
			env:          []v1.EnvVar{fileKeyRef("A", "config", "relaxed.env", "9 lives")},
			want:         []kubecontainer.EnvVar{{Name: "A", Value: secret}},
		},
		{
			name:      "a volume that is no emptyDir, though optional",
			env:       []v1.EnvVar{fileKeyRef("A", "host", "config.env", "FIRST", optional)},
			wantError: []string{`volume "host"`, "must be an emptyDir"},
		},
		{
			name:     "gate off: not set, and the rest of the environment is",
			disabled: true,
			env: []v1.EnvVar{
				fileKeyRef("A", "config", "config.env", "FIRST"),
				fileKeyRef("B", "config", "missing.env", "FIRST"),
				{Name: "C", Value: "literal"},
			},
			want: []kubecontainer.EnvVar{{Name: "C", Value: "literal"}},
		},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			featurestest.SetGate(t, features.EnvFiles, !tc.disabled)
			featurestest.SetGate(t, features.RelaxedEnvironmentVariableValidation, tc.relaxedNames)
			root := t.TempDir()
			for name, content := range files {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o600))
			}
			pod := podWithEmptyDirs("config", "unwritten")
			pod.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: ptr.To(int64(os.Getuid()))}
			pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{
				Name:         "host",
				VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: root}},
			})
			volumes := kubecontainer.VolumeMap{
				"config": {Mounter: &stubVolume{path: root}},
				"host":   {Mounter: &stubVolume{path: root}},
			}

			kl := &Kubelet{volumeManager: &stubVolumeManager{}}
			got, err := kl.environment(pod, &v1.Container{Name: "main", Env: tc.env}, volumes)

			if len(tc.wantError) == 0 {
				require.NoError(t, err)
				sort.Sort(envs(got))
				assert.Equal(t, tc.want, got)
				return
			}
			require.Error(t, err)
			for _, part := range tc.wantError {
				assert.ErrorContains(t, err, part)
			}
			for _, hidden := range []string{secret, root} {
				assert.NotContains(t, err.Error(), hidden)
			}
		})
	}
}

// All keys come from one state of the file: it is read once per start of a
// container, and again for the next start.
func TestEnvFileIsReadOncePerContainerStart(t *testing.T) {
	featurestest.SetGate(t, features.EnvFiles, true)
	root := t.TempDir()
	write := func(value string) {
		content := strings.ReplaceAll("A=?\nB=?\n", "?", value)
		require.NoError(t, os.WriteFile(filepath.Join(root, "config.env"), []byte(content), 0o600))
	}
	pod := podWithEmptyDirs("config")
	container := &v1.Container{
		Env:             []v1.EnvVar{fileKeyRef("A", "config", "config.env", "A"), fileKeyRef("B", "config", "config.env", "B")},
		SecurityContext: &v1.SecurityContext{RunAsUser: ptr.To(int64(os.Getuid()))},
	}
	volumes := kubecontainer.VolumeMap{"config": {Mounter: &stubVolume{path: root}}}

	ctx := context.Background()
	kl := &Kubelet{volumeManager: &stubVolumeManager{}}

	write("1")
	start := kl.newContainerEnvFiles(pod, container, volumes)
	first, _, err := start.value(ctx, &container.Env[0])
	require.NoError(t, err)
	write("2")
	second, _, err := start.value(ctx, &container.Env[1])
	require.NoError(t, err)
	assert.Equal(t, []string{"1", "1"}, []string{first, second})

	next, _, err := kl.newContainerEnvFiles(pod, container, volumes).value(ctx, &container.Env[1])
	require.NoError(t, err)
	assert.Equal(t, "2", next)
}

// fileKeyRef is over envFrom, and one that is optional and missing leaves what
// envFrom set.
func TestEnvFilesOverEnvFrom(t *testing.T) {
	featurestest.SetGate(t, features.EnvFiles, true)
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "config.env"), []byte("KEY=file\n"), 0o600))
	client := fake.NewSimpleClientset(&v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "map"},
		Data:       map[string]string{"A": "map", "B": "map"},
	})
	pod := podWithEmptyDirs("config")
	pod.Namespace = "default"
	container := &v1.Container{
		Name:            "main",
		EnvFrom:         []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "map"}}}},
		Env:             []v1.EnvVar{fileKeyRef("A", "config", "config.env", "KEY"), fileKeyRef("B", "config", "config.env", "MISSING", optional)},
		SecurityContext: &v1.SecurityContext{RunAsUser: ptr.To(int64(os.Getuid()))},
	}
	volumes := kubecontainer.VolumeMap{"config": {Mounter: &stubVolume{path: root}}}
	kl := &Kubelet{volumeManager: &stubVolumeManager{}, kubeClient: client, configMapManager: configmap.NewSimpleConfigMapManager(client)}

	got, err := kl.environment(pod, container, volumes)

	require.NoError(t, err)
	sort.Sort(envs(got))
	assert.Equal(t, []kubecontainer.EnvVar{{Name: "A", Value: "file"}, {Name: "B", Value: "map"}}, got)
}
