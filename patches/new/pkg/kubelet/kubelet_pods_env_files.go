package kubelet

import (
	"context"
	goerrors "errors"
	"fmt"
	"runtime"

	v1 "k8s.io/api/core/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/envfile"
	volumeutil "k8s.io/kubernetes/pkg/volume/util"
)

// envFilesAreConfined says that the kubelet reads env files with package envfile. On
// nodes of other systems nothing keeps a read inside a volume that a workload writes
// to: there the reader of the release stays.
var envFilesAreConfined = runtime.GOOS == "linux"

// newEnvFiles returns the env files of one start of the container, in the form of
// syntax. The volumes are those that the container's pod has on the node.
func (kl *Kubelet) newEnvFiles(pod *v1.Pod, container *v1.Container, volumes kubecontainer.VolumeMap, syntax envfile.Syntax) *containerEnvFiles {
	f := &containerEnvFiles{
		container:   container,
		podEnds:     func() bool { return kl.podWorkers.IsPodTerminationRequested(pod.UID) },
		slashIsRoot: true, // the API server accepts it
	}
	f.readVolume = func(ctx context.Context, id envFileID, keys []string) (*envfile.Values, error) {
		volume := volumes[id.volume]
		// A volume that no container mounts is never set up: there is no file in it.
		if volume.Mounter == nil {
			return nil, envfile.ErrNotFound
		}
		root, err := volumeutil.GetPath(volume.Mounter)
		if err != nil {
			return nil, envfile.ErrReadFailed
		}
		return readEnvFile(ctx, root, id.path, keys, envfile.Options{Syntax: syntax, RelaxedNames: true})
	}
	f.explain = func(ref *v1.FileKeySelector, err error) error {
		what, key := "couldn't parse env file", envfile.Short(ref.Key)
		switch {
		case len(ref.Key) > envfile.MaxNameBytes:
			what = fmt.Sprintf("environment variable key %q exceeds maximum length of %d characters", key, envfile.MaxNameBytes)
		case goerrors.Is(err, envfile.ErrKeyNotFound):
			what = fmt.Sprintf("environment variable key %q not found in file", key)
		case volumes[ref.VolumeName].Mounter == nil:
			what = fmt.Sprintf("cannot find the volume %q referenced by FileKeyRef", ref.VolumeName)
		}
		return fmt.Errorf("%s: %w", what, err)
	}
	return f
}
