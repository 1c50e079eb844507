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
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "k8s.io/api/core/v1"
	compbasemetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/envfile"
	"k8s.io/kubernetes/pkg/kubelet/metrics"
	"k8s.io/utils/ptr"
)

// fileVariable is a variable V that comes from a key of a file in the volume config.
func fileVariable(path, key string, optional bool) *v1.EnvVar {
	return &v1.EnvVar{Name: "V", ValueFrom: &v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{
		VolumeName: "config", Path: path, Key: key, Optional: ptr.To(optional),
	}}}
}

// valueWithin fails a test instead of hanging with it.
func valueWithin(t *testing.T, root string, syntax envfile.Syntax, env *v1.EnvVar) (string, bool, error) {
	t.Helper()
	type result struct {
		value string
		isSet bool
		err   error
	}
	done := make(chan result, 1)
	volumes := kubecontainer.VolumeMap{}
	if root != "" {
		volumes["config"] = kubecontainer.VolumeInfo{Mounter: &testVolumeMounter{path: root}}
	}
	container := &v1.Container{Name: "main", Env: []v1.EnvVar{*env}}
	go func() {
		value, isSet, err := newEnvFiles(container, volumes, syntax).value(context.Background(), env)
		done <- result{value, isSet, err}
	}()
	select {
	case r := <-done:
		return r.value, r.isSet, r.err
	case <-time.After(2 * envFilesTimeout):
		t.Fatal("the kubelet is blocked by the file")
		return "", false, nil
	}
}

func TestEnvFileIsReadInItsVolumeAndWithoutBlocking(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside.env")
	require.NoError(t, os.WriteFile(outside, []byte("K='s3cr3t'\n"), 0o600))
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "dir"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "dir", "config.env"), []byte("K='1'\n"), 0o600))
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "fifo"), 0o600))
	for name, target := range map[string]string{
		"inside": "dir/config.env", "absolute": outside, "up": "../" + filepath.Base(filepath.Dir(outside)) + "/outside.env", "magic": "/proc/self/environ",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(root, name)))
	}
	for _, path := range []string{"dir/config.env", "/dir/config.env", "inside"} {
		value, isSet, err := valueWithin(t, root, envfile.SingleQuoted, fileVariable(path, "K", false))
		require.NoError(t, err, path)
		assert.True(t, isSet)
		assert.Equal(t, "1", value)
	}
	for _, path := range []string{"fifo", "dir", "absolute", "up", "magic"} {
		for _, optional := range []bool{false, true} {
			_, isSet, err := valueWithin(t, root, envfile.SingleQuoted, fileVariable(path, "K", optional))
			require.Error(t, err, path)
			assert.False(t, isSet)
			assert.NotContains(t, err.Error(), "s3cr3t")
			assert.NotContains(t, err.Error(), root)
		}
	}
}

func TestEnvFileValues(t *testing.T) {
	const secret = "s3cr3t"
	for _, tc := range []struct {
		name      string
		noVolume  bool
		syntax    envfile.Syntax
		file      string // none if empty
		optional  bool
		want      string
		notSet    bool
		wantError []string // parts of it
	}{
		{name: "the last definition wins", syntax: envfile.SingleQuoted, file: "K='1'\nK='2'\n", want: "2"},
		{name: "an empty value is a value", syntax: envfile.SingleQuoted, file: "K=''\n", want: ""},
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
			dir := t.TempDir()
			if tc.file != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "config.env"), []byte(tc.file), 0o600))
			}
			root := dir
			if tc.noVolume {
				root = ""
			}
			value, isSet, err := valueWithin(t, root, tc.syntax, fileVariable("config.env", "K", tc.optional))
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
			assert.NotContains(t, err.Error(), dir)
		})
	}
}

// All keys come from one state of the file: it is read once per start of a container,
// and again for the next start.
func TestEnvFileIsReadOncePerStart(t *testing.T) {
	root := t.TempDir()
	write := func(value string) {
		content := fmt.Sprintf("A='%[1]s'\nB='%[1]s'\n", value)
		require.NoError(t, os.WriteFile(filepath.Join(root, "config.env"), []byte(content), 0o600))
	}
	container := &v1.Container{Env: []v1.EnvVar{*fileVariable("config.env", "A", false), *fileVariable("config.env", "B", false)}}
	volumes := kubecontainer.VolumeMap{"config": {Mounter: &testVolumeMounter{path: root}}}

	write("1")
	start := newEnvFiles(container, volumes, envfile.SingleQuoted)
	first, _, err := start.value(context.Background(), &container.Env[0])
	require.NoError(t, err)
	write("2")
	second, _, err := start.value(context.Background(), &container.Env[1])
	require.NoError(t, err)
	assert.Equal(t, []string{"1", "1"}, []string{first, second})

	next, _, err := newEnvFiles(container, volumes, envfile.SingleQuoted).value(context.Background(), &container.Env[1])
	require.NoError(t, err)
	assert.Equal(t, "2", next)
}

func TestEnvFilesOfADeletedPodAreNotRead(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "config.env"), []byte("K='1'\n"), 0o600))
	env := fileVariable("config.env", "K", true)
	volumes := kubecontainer.VolumeMap{"config": {Mounter: &testVolumeMounter{path: root}}}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, isSet, err := newEnvFiles(&v1.Container{Env: []v1.EnvVar{*env}}, volumes, envfile.SingleQuoted).value(ctx, env)
	assert.ErrorIs(t, err, envfile.ErrInterrupted)
	assert.False(t, isSet)
}

func TestEnvFileWithAKeyThatNoneCanHave(t *testing.T) {
	key := strings.Repeat("K", 1_000_000)
	for _, optional := range []bool{false, true} {
		_, isSet, err := valueWithin(t, t.TempDir(), envfile.SingleQuoted, fileVariable("config.env", key, optional))
		require.ErrorContains(t, err, "exceeds maximum length of 128 characters")
		assert.False(t, isSet)
		assert.Less(t, len(err.Error()), 1024)
	}
}

func TestEnvFileMetrics(t *testing.T) {
	registry := compbasemetrics.NewKubeRegistry()
	registry.MustRegister(metrics.EnvFileReadDuration)
	registry.MustRegister(metrics.EnvFileErrorsTotal)
	metrics.EnvFileErrorsTotal.Reset()
	reads := func() uint64 {
		histogram, err := testutil.GetHistogramVecFromGatherer(registry, "kubelet_env_file_read_duration_seconds", nil)
		require.NoError(t, err)
		return histogram.GetAggregatedSampleCount()
	}
	before := reads()
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "config.env"), []byte("K='1'\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "broken.env"), []byte("K\n"), 0o600))
	container := &v1.Container{Name: "main"}
	for _, ref := range []*v1.EnvVar{
		fileVariable("config.env", "K", false),
		fileVariable("config.env", "missing", false),
		fileVariable("config.env", "missing", true), // no error
		fileVariable("broken.env", "K", true),
		fileVariable("no.env", "K", false),
		fileVariable("config.env", strings.Repeat("K", 129), false),
	} {
		container.Env = append(container.Env, *ref)
	}
	files := newEnvFiles(container, kubecontainer.VolumeMap{"config": {Mounter: &testVolumeMounter{path: root}}}, envfile.SingleQuoted)
	for i := range container.Env {
		_, _, _ = files.value(context.Background(), &container.Env[i])
	}

	assert.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP kubelet_env_file_errors_total [ALPHA] Cumulative number of container starts that failed because a variable could not be set from an env file. Broken down by reason.
# TYPE kubelet_env_file_errors_total counter
kubelet_env_file_errors_total{reason="invalid_syntax"} 1
kubelet_env_file_errors_total{reason="key_not_found"} 1
kubelet_env_file_errors_total{reason="limit_exceeded"} 1
kubelet_env_file_errors_total{reason="not_found"} 1
`), "kubelet_env_file_errors_total"))
	assert.EqualValues(t, 3, reads()-before, "each file is read once")
}
