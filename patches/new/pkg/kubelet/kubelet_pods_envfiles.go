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
	goerrors "errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/envfile"
	"k8s.io/kubernetes/pkg/kubelet/metrics"
)

// containerEnvFiles is where one start of a container takes its fileKeyRef
// variables from. A file is opened and parsed once, however many keys the
// container takes from it, so that they all come from one state of the file.
type containerEnvFiles struct {
	enabled   bool
	pod       *v1.Pod
	container *v1.Container
	volumes   kubecontainer.VolumeMap

	// files are those of the whole container, and last is the one that was
	// asked for last: most containers have but one.
	files map[envFileID]*envFile
	last  *envFile

	// getReader returns the credentials that must be allowed to read the files.
	// It may ask the container runtime, so it is called once, and only if the
	// container has a file to read.
	getReader func(context.Context, *v1.Pod, *v1.Container) (*envfile.Credentials, error)
	reader    *envfile.Credentials

	// deadline is that of all readings of this start, set at the first one.
	deadline time.Time
}

// envFilesTimeout bounds how long one start of a container reads env files: far
// more than thousands of files take, and far less than a pod can make the
// kubelet wait by its leases.
const envFilesTimeout = 10 * time.Second

type envFileID struct {
	volume, path string
}

// envFile is a file, what a container takes from it, and once it is read the
// values, or the error.
type envFile struct {
	id     envFileID
	keys   []string
	isRead bool
	values *envfile.Values
	err    error
}

func (kl *Kubelet) newContainerEnvFiles(pod *v1.Pod, container *v1.Container, volumes kubecontainer.VolumeMap) *containerEnvFiles {
	return &containerEnvFiles{
		enabled:   utilfeature.DefaultFeatureGate.Enabled(features.EnvFiles),
		pod:       pod,
		container: container,
		volumes:   volumes,
		getReader: kl.envFileReader,
	}
}

// value returns the value of a variable whose source is a fileKeyRef, and
// whether the variable is to be set at all: it is not if the feature is
// disabled, or if it is optional and nothing has written the file or the key.
//
// The error is shown in events and in the container's status: it says which
// variable of which container lacks what, but nothing that is in the file.
func (f *containerEnvFiles) value(ctx context.Context, env *v1.EnvVar) (string, bool, error) {
	if !f.enabled {
		return "", false, nil
	}
	ref := env.ValueFrom.FileKeyRef
	value, err := f.lookup(ctx, ref)
	if err == nil {
		return value, true, nil
	}
	optional := ref.Optional != nil && *ref.Optional
	if optional && (goerrors.Is(err, envfile.ErrNotFound) || goerrors.Is(err, envfile.ErrKeyNotFound)) {
		return "", false, nil
	}
	metrics.EnvFileErrorsTotal.WithLabelValues(envFileErrorReason(err)).Inc()
	return "", false, fmt.Errorf("couldn't set variable %q of container %q from key %q of env file %q in volume %q: %w",
		envfile.Short(env.Name), f.container.Name, ref.Key, envfile.Short(ref.Path), ref.VolumeName, err)
}

func (f *containerEnvFiles) lookup(ctx context.Context, ref *v1.FileKeySelector) (string, error) {
	if f.files == nil {
		f.collectKeys()
	}
	file := f.file(ref)
	if !file.isRead {
		file.values, file.err = f.read(ctx, file.id, file.keys)
		file.isRead = true
	}
	if file.err != nil {
		return "", file.err
	}
	return file.values.Lookup(ref.Key)
}

// collectKeys finds out which keys the container takes from which file.
func (f *containerEnvFiles) collectKeys() {
	f.files = map[envFileID]*envFile{}
	for i := range f.container.Env {
		source := f.container.Env[i].ValueFrom
		if source == nil || source.FileKeyRef == nil {
			continue
		}
		file := f.file(source.FileKeyRef)
		file.keys = append(file.keys, source.FileKeyRef.Key)
	}
}

func (f *containerEnvFiles) file(ref *v1.FileKeySelector) *envFile {
	id := envFileID{volume: ref.VolumeName, path: ref.Path}
	if f.last != nil && f.last.id == id {
		return f.last
	}
	file, ok := f.files[id]
	if !ok {
		file = &envFile{id: id}
		if len(f.files) == 0 {
			file.keys = make([]string, 0, len(f.container.Env))
		}
		f.files[id] = file
	}
	f.last = file
	return file
}

func (f *containerEnvFiles) read(ctx context.Context, id envFileID, keys []string) (*envfile.Values, error) {
	root, err := f.emptyDir(id.volume)
	if err != nil {
		return nil, err
	}
	if f.deadline.IsZero() {
		f.deadline = time.Now().Add(envFilesTimeout)
	}
	ctx, cancel := context.WithDeadline(podWorkerContext(ctx), f.deadline)
	defer cancel()
	if f.reader == nil {
		if f.reader, err = f.getReader(ctx, f.pod, f.container); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	defer func() { metrics.EnvFileReadDuration.Observe(metrics.SinceInSeconds(start)) }()
	return envfile.Read(ctx, root, id.path, keys, envfile.Options{
		RelaxedNames: utilfeature.DefaultFeatureGate.Enabled(features.RelaxedEnvironmentVariableValidation),
		Reader:       f.reader,
	})
}

// emptyDir returns the directory of a volume on the node. A volume that no
// container mounts is never set up: there is no file in it.
func (f *containerEnvFiles) emptyDir(name string) (string, error) {
	for i := range f.pod.Spec.Volumes {
		volume := &f.pod.Spec.Volumes[i]
		if volume.Name != name {
			continue
		}
		// The API server refuses any other volume. One that slipped past it
		// must not make the kubelet read from, say, a hostPath.
		if volume.EmptyDir == nil {
			return "", invalidVolumeError("the volume must be an emptyDir")
		}
		if info, ok := f.volumes[name]; ok && info.Mounter != nil {
			return info.Mounter.GetPath(), nil
		}
		return "", envfile.ErrNotFound
	}
	return "", invalidVolumeError("the pod has no volume of that name")
}
