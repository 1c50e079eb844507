//go:build linux

package kubelet

import (
	"context"
	goerrors "errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	compbasemetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/envfile"
	"k8s.io/kubernetes/pkg/kubelet/metrics"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	"k8s.io/utils/ptr"
)

// These tests hold for every release. What they need of it is in the file beside this one
// that has the tests of its own: kubeletWithEnvFiles and envFilesOf.

func fileKeyRef(name, volume, path, key string, tweaks ...func(*v1.FileKeySelector)) v1.EnvVar {
	selector := &v1.FileKeySelector{VolumeName: volume, Path: path, Key: key}
	for _, tweak := range tweaks {
		tweak(selector)
	}
	return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{FileKeyRef: selector}}
}

func optional(selector *v1.FileKeySelector)  { selector.Optional = ptr.To(true) }
func mandatory(selector *v1.FileKeySelector) { selector.Optional = ptr.To(false) }

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

// mountedAt is a volume config in the folder root.
func mountedAt(root string) kubecontainer.VolumeMap {
	return kubecontainer.VolumeMap{"config": {Mounter: &stubVolume{path: root}}}
}

// volumeOf returns the root of a volume with the files.
func volumeOf(tb testing.TB, files map[string]string) string {
	tb.Helper()
	root := tb.TempDir()
	for name, content := range files {
		require.NoError(tb, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		require.NoError(tb, os.WriteFile(filepath.Join(root, name), []byte(content), 0o600))
	}
	return root
}

// startEnvFiles returns the env files of a container, in the volume config at root.
func startEnvFiles(tb testing.TB, root string, container *v1.Container) *containerEnvFiles {
	return envFilesOf(kubeletWithEnvFiles(tb), podWithEmptyDirs("config"), container, root)
}

// valueWithin fails a test instead of hanging with it.
func valueWithin(t *testing.T, files *containerEnvFiles, env *v1.EnvVar) (value string, isSet bool, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		value, isSet, err = files.value(context.Background(), env)
	}()
	select {
	case <-done:
		return value, isSet, err
	case <-time.After(2 * envFilesTimeout):
		t.Fatal("the kubelet is blocked by the file")
		return "", false, nil
	}
}

func TestEnvFileIsReadInItsVolumeAndWithoutBlocking(t *testing.T) {
	outside := filepath.Join(volumeOf(t, map[string]string{"outside.env": "K=s3cr3t\n"}), "outside.env")
	root := volumeOf(t, map[string]string{"dir/config.env": "K=1\n"})
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "fifo"), 0o600))
	for name, target := range map[string]string{
		"inside": "dir/config.env", "absolute": outside, "up": "../" + filepath.Base(filepath.Dir(outside)) + "/outside.env", "magic": "/proc/self/environ",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(root, name)))
	}
	read := func(path string, tweaks ...func(*v1.FileKeySelector)) (string, bool, error) {
		env := fileKeyRef("V", "config", path, "K", tweaks...)
		return valueWithin(t, startEnvFiles(t, root, &v1.Container{Env: []v1.EnvVar{env}}), &env)
	}
	for _, path := range []string{"dir/config.env", "inside"} {
		value, isSet, err := read(path)
		require.NoError(t, err, path)
		assert.True(t, isSet)
		assert.Equal(t, "1", value)
	}
	for _, path := range []string{"fifo", "dir", "absolute", "up", "magic"} {
		for _, tweaks := range [][]func(*v1.FileKeySelector){nil, {optional}} {
			_, isSet, err := read(path, tweaks...)
			require.Error(t, err, path)
			assert.False(t, isSet)
			assert.NotContains(t, err.Error(), "s3cr3t")
			assert.NotContains(t, err.Error(), root)
		}
	}
}

func TestSpellingsOfAPathAreOneFile(t *testing.T) {
	root := volumeOf(t, map[string]string{"a.env": "K=1\n"})
	container := &v1.Container{}
	for _, path := range []string{"a.env", "./a.env", ".//./a.env"} {
		container.Env = append(container.Env, fileKeyRef("V", "config", path, "K"))
	}
	start := startEnvFiles(t, root, container)
	for i := range container.Env {
		value, isSet, err := start.value(context.Background(), &container.Env[i])
		require.NoError(t, err)
		assert.True(t, isSet)
		assert.Equal(t, "1", value)
		require.NoError(t, os.WriteFile(filepath.Join(root, "a.env"), []byte("K=2\n"), 0o600))
	}
}

// All keys come from one state of the file: it is read once per start of a
// container, and again for the next start.
func TestEnvFileIsReadOncePerContainerStart(t *testing.T) {
	root := t.TempDir()
	write := func(value string) {
		content := strings.ReplaceAll("A=?\nB=?\n", "?", value)
		require.NoError(t, os.WriteFile(filepath.Join(root, "config.env"), []byte(content), 0o600))
	}
	container := &v1.Container{Env: []v1.EnvVar{fileKeyRef("A", "config", "config.env", "A"), fileKeyRef("B", "config", "config.env", "B"), fileKeyRef("C", "config", "other.env", "C", optional)}}

	ctx := context.Background()
	write("1")
	start := startEnvFiles(t, root, container)
	first, _, err := start.value(ctx, &container.Env[0])
	require.NoError(t, err)
	_, _, err = start.value(ctx, &container.Env[2])
	require.NoError(t, err, "of another file meanwhile")
	write("2")
	second, _, err := start.value(ctx, &container.Env[1])
	require.NoError(t, err)
	assert.Equal(t, []string{"1", "1"}, []string{first, second})

	next, _, err := startEnvFiles(t, root, container).value(ctx, &container.Env[1])
	require.NoError(t, err)
	assert.Equal(t, "2", next)
}

// The tests of envfile show what a context ends. This one shows that all readings of
// a start have the same one.
func TestEnvFilesOfOneStartShareADeadline(t *testing.T) {
	root := volumeOf(t, map[string]string{"1.env": "KEY=value\n", "2.env": "KEY=value\n", "3.env": "KEY=value\n"})
	container := &v1.Container{Env: []v1.EnvVar{
		fileKeyRef("A", "config", "1.env", "KEY"),
		fileKeyRef("B", "config", "2.env", "KEY"),
		fileKeyRef("C", "config", "3.env", "KEY", optional),
	}}
	ctx := context.Background()

	start := startEnvFiles(t, root, container)
	before := time.Now()
	_, _, err := start.value(ctx, &container.Env[0])
	require.NoError(t, err)
	deadline := start.deadline
	assert.False(t, deadline.Before(before.Add(10*time.Second)), "less than 10 s")
	assert.False(t, deadline.After(time.Now().Add(10*time.Second)), "more than 10 s")
	_, _, err = start.value(ctx, &container.Env[1])
	require.NoError(t, err)
	assert.Equal(t, deadline, start.deadline, "of the second file")
	start.deadline = time.Now().Add(-time.Second)
	_, _, err = start.value(ctx, &container.Env[2])
	require.ErrorIs(t, err, envfile.ErrInterrupted, "though optional")
	assert.ErrorContains(t, err, "took too long")
}

func TestEnvFilesEndWithTheContextOfTheStart(t *testing.T) {
	root := volumeOf(t, map[string]string{"config.env": "K=1\n"})
	env := fileKeyRef("V", "config", "config.env", "K", optional)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, isSet, err := startEnvFiles(t, root, &v1.Container{Env: []v1.EnvVar{env}}).value(ctx, &env)
	require.ErrorIs(t, err, envfile.ErrInterrupted)
	assert.False(t, isSet)
}

// The context of a start does not end when its pod is deleted. A pod could hold up its
// deletion until the deadline otherwise: each file with a lease takes some 50 ms.
func TestEnvFilesDoNotHoldUpThePodsDeletion(t *testing.T) {
	root := t.TempDir()
	container := &v1.Container{}
	const files = 100
	for i := 0; i < files; i++ {
		name := fmt.Sprint(i, ".env")
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte("K=1\n"), 0o600))
		file, err := os.Open(filepath.Join(root, name))
		require.NoError(t, err)
		t.Cleanup(func() { file.Close() })
		if _, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
			t.Skipf("the file system for temporary files has no leases: %v", err)
		}
		container.Env = append(container.Env, fileKeyRef("V", "config", name, "K", optional))
	}
	kl, pod := kubeletWithEnvFiles(t), podWithEmptyDirs("config")
	pod.UID = "12345678"
	start := envFilesOf(kl, pod, container, root)
	begin, interrupted := time.Now(), 0
	for i := range container.Env {
		if i == 2 {
			kl.podWorkers = &fakePodWorkers{terminationRequested: map[types.UID]bool{pod.UID: true}}
		}
		_, isSet, err := start.value(context.Background(), &container.Env[i])
		require.Error(t, err)
		assert.False(t, isSet)
		if goerrors.Is(err, envfile.ErrInterrupted) {
			interrupted++
			assert.ErrorContains(t, err, "pod is being deleted")
		}
	}
	assert.Equal(t, files-2, interrupted)
	assert.Less(t, time.Since(begin), 2*time.Second)
}

type envFileMetricsCase struct {
	name       string
	env        []v1.EnvVar
	wantReason string // empty: the container starts
	wantReads  uint64
}

func TestEnvFileMetrics(t *testing.T) {
	testEnvFileMetrics(t, kubeletWithEnvFiles(t), []envFileMetricsCase{
		{name: "no env file", env: []v1.EnvVar{{Name: "A", Value: "literal"}}},
		{name: "two keys of one file are one read, beside another source", wantReads: 1, env: []v1.EnvVar{
			{Name: "NODE", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}},
			fileKeyRef("A", "config", "good.env", "KEY"),
			fileKeyRef("B", "config", "good.env", "KEY"),
		}},
		{name: "what is optional and missing is no error", wantReads: 2, env: []v1.EnvVar{
			fileKeyRef("A", "config", "missing.env", "KEY", optional),
			fileKeyRef("B", "config", "good.env", "MISSING", optional),
			fileKeyRef("C", "unwritten", "good.env", "KEY", optional),
		}},
		{name: "a missing file", wantReason: "not_found", wantReads: 1, env: []v1.EnvVar{
			fileKeyRef("A", "config", "missing.env", "KEY", mandatory),
		}},
		{name: "a volume that nothing has written", wantReason: "not_found", env: []v1.EnvVar{
			fileKeyRef("A", "unwritten", "good.env", "KEY"),
		}},
		{name: "a missing key", wantReason: "key_not_found", wantReads: 1, env: []v1.EnvVar{
			fileKeyRef("A", "config", "good.env", "MISSING"),
		}},
		{name: "the longest key that a file can have", wantReason: "key_not_found", wantReads: 1, env: []v1.EnvVar{
			fileKeyRef("A", "config", "good.env", strings.Repeat("K", 128)),
		}},
		{name: "a key that none can have", wantReason: "limit_exceeded", env: []v1.EnvVar{
			fileKeyRef("A", "config", "good.env", strings.Repeat("K", 129)),
		}},
		{name: "a container that fails for two files counts once", wantReason: "invalid_syntax", wantReads: 1, env: []v1.EnvVar{
			fileKeyRef("A", "config", "broken.env", "KEY", optional),
			fileKeyRef("B", "config", "missing.env", "KEY"),
		}},
		{name: "a file that cannot be trusted, though optional", wantReason: "not_regular", wantReads: 1, env: []v1.EnvVar{
			fileKeyRef("A", "config", ".", "KEY", optional),
		}},
	})
}

// testEnvFileMetrics compares the metrics as a whole: a workload must not get
// anything into them, neither a name nor a path nor what it wrote.
func testEnvFileMetrics(t *testing.T, kl *Kubelet, testCases []envFileMetricsCase) {
	t.Helper()
	root := volumeOf(t, map[string]string{"good.env": "KEY='value'\n", "broken.env": "broken\n"})
	pod := podWithEmptyDirs("config", "unwritten")
	pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: "host", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: root}}})
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

			_, err := kl.environment(pod, &v1.Container{Env: tc.env}, mountedAt(root))

			var want string
			if tc.wantReason == "" {
				require.Nil(t, err)
			} else {
				require.NotNil(t, err)
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
