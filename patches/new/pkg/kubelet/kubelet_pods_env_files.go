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
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/envfile"
	"k8s.io/kubernetes/pkg/kubelet/metrics"
	volumeutil "k8s.io/kubernetes/pkg/volume/util"
)

// envFilesTimeout bounds how long one start of a container reads env files: far
// more than thousands of files take, and far less than a pod can make the
// kubelet wait by its leases.
const envFilesTimeout = 10 * time.Second

// envFiles is where one start of a container takes its fileKeyRef variables from.
// A file is opened and parsed once, however many keys the container takes from it,
// so that they all come from one state of the file.
type envFiles struct {
	container *v1.Container
	volumes   kubecontainer.VolumeMap
	// syntax is the form of the files.
	syntax envfile.Syntax

	files map[envFileID]*envFile
	// deadline is that of all readings of this start, set at the first one.
	deadline time.Time
}

type envFileID struct{ volume, path string }

// envFile is what a container takes from a file, and once it is read the values, or
// the error.
type envFile struct {
	keys   []string
	isRead bool
	values *envfile.Values
	err    error
}

func newEnvFiles(container *v1.Container, volumes kubecontainer.VolumeMap, syntax envfile.Syntax) *envFiles {
	return &envFiles{container: container, volumes: volumes, syntax: syntax}
}

// value returns the value of a variable whose source is a fileKeyRef, and whether it
// is set at all: an optional variable is not if nothing has written the volume, the
// file or the key.
//
// The error is shown in events and in the container's status: it says which variable
// lacks what, but nothing that is in the file, and no path of the node.
func (f *envFiles) value(ctx context.Context, env *v1.EnvVar) (value string, isSet bool, err error) {
	ref := env.ValueFrom.FileKeyRef
	value, err = f.lookup(ctx, ref)
	missing := errors.Is(err, envfile.ErrNotFound) || errors.Is(err, envfile.ErrKeyNotFound)
	switch {
	case err == nil:
		return value, true, nil
	case missing && ref.Optional != nil && *ref.Optional:
		return "", false, nil
	}
	if cause := (*envfile.Error)(nil); errors.As(err, &cause) {
		metrics.EnvFileErrorsTotal.WithLabelValues(string(cause.Reason)).Inc()
	}
	key := envfile.Short(ref.Key)
	what := "couldn't parse env file"
	switch {
	case len(ref.Key) > envfile.MaxNameBytes:
		what = fmt.Sprintf("environment variable key %q exceeds maximum length of %d characters", key, envfile.MaxNameBytes)
	case errors.Is(err, envfile.ErrKeyNotFound):
		what = fmt.Sprintf("environment variable key %q not found in file", key)
	case !f.hasVolume(ref.VolumeName):
		what = fmt.Sprintf("cannot find the volume %q referenced by FileKeyRef", ref.VolumeName)
	}
	return "", false, fmt.Errorf("couldn't set variable %q of container %q from key %q of env file %q in volume %q: %s: %w",
		envfile.Short(env.Name), f.container.Name, key, envfile.Short(ref.Path), ref.VolumeName, what, err)
}

func (f *envFiles) hasVolume(name string) bool { return f.volumes[name].Mounter != nil }

func (f *envFiles) lookup(ctx context.Context, ref *v1.FileKeySelector) (string, error) {
	// The API server accepts it, and no env file can have it.
	if len(ref.Key) > envfile.MaxNameBytes {
		return "", envfile.ErrLimitExceeded
	}
	if f.files == nil {
		f.collectKeys()
	}
	id := envFileID{ref.VolumeName, ref.Path}
	file := f.files[id]
	if !file.isRead {
		file.values, file.err = f.read(ctx, id, file.keys)
		file.isRead = true
	}
	if file.err != nil {
		return "", file.err
	}
	return file.values.Lookup(ref.Key)
}

// collectKeys finds out which keys the container takes from which file.
func (f *envFiles) collectKeys() {
	f.files = map[envFileID]*envFile{}
	for i := range f.container.Env {
		source := f.container.Env[i].ValueFrom
		if source == nil || source.FileKeyRef == nil {
			continue
		}
		id := envFileID{source.FileKeyRef.VolumeName, source.FileKeyRef.Path}
		if f.files[id] == nil {
			f.files[id] = &envFile{}
		}
		f.files[id].keys = append(f.files[id].keys, source.FileKeyRef.Key)
	}
}

func (f *envFiles) read(ctx context.Context, id envFileID, keys []string) (*envfile.Values, error) {
	// A volume that no container mounts is never set up: there is no file in it.
	if !f.hasVolume(id.volume) {
		return nil, envfile.ErrNotFound
	}
	root, err := volumeutil.GetPath(f.volumes[id.volume].Mounter)
	if err != nil {
		return nil, envfile.ErrReadFailed
	}
	if f.deadline.IsZero() {
		f.deadline = time.Now().Add(envFilesTimeout)
	}
	ctx, cancel := context.WithDeadline(ctx, f.deadline)
	defer cancel()
	start := time.Now()
	defer func() { metrics.EnvFileReadDuration.Observe(metrics.SinceInSeconds(start)) }()
	// The API server accepts a path that starts with a slash, which means the volume's root.
	return envfile.Read(ctx, root, strings.TrimLeft(id.path, "/"), keys, envfile.Options{Syntax: f.syntax, RelaxedNames: true})
}
