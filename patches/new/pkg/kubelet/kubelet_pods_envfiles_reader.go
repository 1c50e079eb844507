package kubelet

import (
	"context"
	"fmt"

	grpcstatus "google.golang.org/grpc/status"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/envfile"
	"k8s.io/kubernetes/pkg/securitycontext"
)

// newContainerEnvFiles returns the env files of one start of the container, which must be
// allowed to read them.
func (kl *Kubelet) newContainerEnvFiles(pod *v1.Pod, container *v1.Container, volumes kubecontainer.VolumeMap) *containerEnvFiles {
	f := &containerEnvFiles{container: container, podEnds: func() bool { return kl.podWorkers.IsPodTerminationRequested(pod.UID) }}
	if !utilfeature.DefaultFeatureGate.Enabled(features.EnvFiles) {
		return f
	}
	// They may come from the container runtime, so they are looked up once, and only if
	// the container has a file to read.
	var reader *envfile.Credentials
	f.readVolume = func(ctx context.Context, id envFileID, keys []string) (*envfile.Values, error) {
		root, err := emptyDir(pod, volumes, id.volume)
		if err != nil {
			return nil, err
		}
		if reader == nil {
			if reader, err = kl.envFileReader(ctx, pod, container); err != nil {
				return nil, err
			}
		}
		return readEnvFile(ctx, root, id.path, keys, envfile.Options{
			RelaxedNames: utilfeature.DefaultFeatureGate.Enabled(features.RelaxedEnvironmentVariableValidation),
			Reader:       reader,
		})
	}
	return f
}

// emptyDir returns the directory of a volume on the node. A volume that no
// container mounts is never set up: there is no file in it.
func emptyDir(pod *v1.Pod, volumes kubecontainer.VolumeMap, name string) (string, error) {
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if volume.Name != name {
			continue
		}
		// The API server refuses any other volume. One that slipped past it
		// must not make the kubelet read from, say, a hostPath.
		if volume.EmptyDir == nil {
			return "", envfile.ErrNotEmptyDir
		}
		if info := volumes[name]; info.Mounter != nil {
			return info.Mounter.GetPath(), nil
		}
		return "", envfile.ErrNotFound
	}
	return "", envfile.ErrNoVolume
}

// envFileReader returns the credentials of a container's first process, as far
// as they are known on the node: an env file must be one that this process
// could read itself (KEP-3721, row 7 of its failure table).
//
// They are those that the runtime is asked for. What it finds in the image's
// own files is not known: the UID of a user name, the groups of /etc/group, and
// the primary group, unless the pod sets runAsGroup. It is not the group that
// the image's USER names, which the CRI does not pass on.
func (kl *Kubelet) envFileReader(ctx context.Context, pod *v1.Pod, container *v1.Container) (*envfile.Credentials, error) {
	effective := securitycontext.DetermineEffectiveSecurityContext(pod, container)
	reader := &envfile.Credentials{
		UID:    effective.RunAsUser,
		GID:    effective.RunAsGroup,
		Groups: kl.GetExtraSupplementalGroupsForPod(pod),
		// With the gate off the kubelet runs each pod in the node's user namespace.
		UserNamespace: pod.Spec.HostUsers != nil && !*pod.Spec.HostUsers && utilfeature.DefaultFeatureGate.Enabled(features.UserNamespacesSupport),
	}
	if reader.UserNamespace {
		reader.IDsPerPod = kl.envFileIDsPerPod()
	}
	if sc := pod.Spec.SecurityContext; sc != nil {
		if sc.FSGroup != nil {
			reader.Groups = append(reader.Groups, *sc.FSGroup)
		}
		reader.Groups = append(reader.Groups, sc.SupplementalGroups...)
	}
	if reader.UID == nil {
		uid, err := kl.containerRuntime.GetImageUID(ctx, container.Image)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, fmt.Errorf("couldn't get the user of image %q: %w", container.Image, envfile.ErrInterrupted)
		case err != nil:
			// It may have paths of the node.
			klog.FromContext(ctx).Error(err, "Couldn't get the user of an image", "pod", klog.KObj(pod), "containerName", container.Name, "image", container.Image)
			return nil, fmt.Errorf("couldn't get the user of image %q from the container runtime: %s", container.Image, grpcstatus.Code(err))
		}
		reader.UID = uid
	}
	return reader, nil
}
