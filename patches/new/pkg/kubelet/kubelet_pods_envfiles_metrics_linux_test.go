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
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "k8s.io/api/core/v1"
	compbasemetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/metrics"
	"k8s.io/utils/ptr"
)

// The metrics are compared as a whole: a workload must not get anything into
// them, neither a name nor a path nor what it wrote.
func TestEnvFileMetrics(t *testing.T) {
	featurestest.SetGate(t, features.EnvFiles, true)
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "good.env"), []byte("KEY=value\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "broken.env"), []byte("broken\n"), 0o600))
	volumes := kubecontainer.VolumeMap{"config": {Mounter: &stubVolume{path: root}}}

	testCases := []struct {
		name       string
		env        []v1.EnvVar
		imageErr   error
		wantReason string // empty: the container starts
		wantReads  uint64
	}{
		{name: "no env file", env: []v1.EnvVar{{Name: "A", Value: "literal"}}},
		{name: "two keys of one file are one read", wantReads: 1, env: []v1.EnvVar{
			fileKeyRef("A", "config", "good.env", "KEY"),
			fileKeyRef("B", "config", "good.env", "KEY"),
		}},
		{name: "what is optional and missing is no error", wantReads: 2, env: []v1.EnvVar{
			fileKeyRef("A", "config", "missing.env", "KEY", optional),
			fileKeyRef("B", "config", "good.env", "MISSING", optional),
			fileKeyRef("C", "unwritten", "good.env", "KEY", optional),
		}},
		{name: "a missing file", wantReason: "not_found", wantReads: 1, env: []v1.EnvVar{
			fileKeyRef("A", "config", "missing.env", "KEY"),
		}},
		{name: "a volume that nothing has written", wantReason: "not_found", env: []v1.EnvVar{
			fileKeyRef("A", "unwritten", "good.env", "KEY"),
		}},
		{name: "a missing key", wantReason: "key_not_found", wantReads: 1, env: []v1.EnvVar{
			fileKeyRef("A", "config", "good.env", "MISSING"),
		}},
		{name: "a container that fails for two files counts once", wantReason: "invalid_syntax", wantReads: 1, env: []v1.EnvVar{
			fileKeyRef("A", "config", "broken.env", "KEY"),
			fileKeyRef("B", "config", "missing.env", "KEY"),
		}},
		{name: "a file that cannot be trusted, though optional", wantReason: "not_regular", wantReads: 1, env: []v1.EnvVar{
			fileKeyRef("A", "config", ".", "KEY", optional),
		}},
		{name: "a volume that is no emptyDir", wantReason: "invalid_volume", env: []v1.EnvVar{
			fileKeyRef("A", "host", "good.env", "KEY"),
		}},
		{name: "a volume that the pod does not have", wantReason: "invalid_volume", env: []v1.EnvVar{
			fileKeyRef("A", "missing", "good.env", "KEY"),
		}},
		{name: "a runtime that does not answer", wantReason: "read_failed", imageErr: assert.AnError, env: []v1.EnvVar{
			fileKeyRef("A", "config", "good.env", "KEY"),
		}},
	}
	registry := compbasemetrics.NewKubeRegistry()
	registry.MustRegister(metrics.EnvFileReadDuration)
	registry.MustRegister(metrics.EnvFileErrorsTotal)
	reads := func(t *testing.T) uint64 {
		t.Helper()
		histogram, err := testutil.GetHistogramVecFromGatherer(registry, "kubelet_env_file_read_duration_seconds", nil)
		require.NoError(t, err)
		return histogram.GetAggregatedSampleCount()
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			metrics.EnvFileErrorsTotal.Reset()
			readsBefore := reads(t)
			pod := podWithEmptyDirs("config", "unwritten")
			pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: "host", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: root}}})
			kl := &Kubelet{
				containerRuntime: &imageUserRuntime{uid: ptr.To(int64(os.Getuid())), err: tc.imageErr},
				volumeManager:    &stubVolumeManager{},
			}

			_, err := kl.environment(pod, &v1.Container{Env: tc.env}, volumes)

			var want string
			if tc.wantReason == "" {
				require.NoError(t, err)
			} else {
				require.Error(t, err)
				want = fmt.Sprintf(`
					# HELP kubelet_env_file_errors_total [ALPHA] Cumulative number of container starts that failed because a variable could not be set from an env file. Broken down by reason.
					# TYPE kubelet_env_file_errors_total counter
					kubelet_env_file_errors_total{reason=%q} 1
				`, tc.wantReason)
			}
			assert.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(want), "kubelet_env_file_errors_total"))
			assert.Equal(t, tc.wantReads, reads(t)-readsBefore, "files read")
		})
	}
}
