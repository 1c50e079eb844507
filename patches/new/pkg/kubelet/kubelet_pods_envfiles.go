package kubelet

import (
	"context"
	goerrors "errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/envfile"
	"k8s.io/kubernetes/pkg/kubelet/metrics"
)

// envFilesTimeout bounds how long one start of a container reads env files: far
// more than thousands of files take, and far less than a pod can make the
// kubelet wait by its leases.
const envFilesTimeout = 10 * time.Second

// containerEnvFiles is where one start of a container takes its fileKeyRef
// variables from. A file is opened and parsed once, however many keys the
// container takes from it, so that they all come from one state of the file.
type containerEnvFiles struct {
	container *v1.Container
	// podEnds reports whether the pod is being deleted, evicted or ended. The kubelet
	// starts containers with a context that does not end then.
	podEnds func() bool
	// readVolume reads keys of a file in a volume. It is nil if the feature is disabled.
	readVolume func(ctx context.Context, id envFileID, keys []string) (*envfile.Values, error)
	// explain adds the words that the release has for an error. It may be nil.
	explain func(ref *v1.FileKeySelector, err error) error
	// slashIsRoot says that a path may start with a slash, which means the volume's root.
	slashIsRoot bool

	// files are those of the whole container, and last is the one that was
	// asked for last: most containers have but one.
	files map[envFileID]*envFile
	last  *envFile

	// deadline is that of all readings of this start, set at the first one.
	deadline time.Time
}

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

// value returns the value of a variable whose source is a fileKeyRef, and
// whether the variable is to be set at all: it is not if the feature is
// disabled, or if it is optional and nothing has written the volume, the file
// or the key.
//
// The error is shown in events and in the container's status: it says which
// variable of which container lacks what, but nothing that is in the file, and
// no path of the node.
func (f *containerEnvFiles) value(ctx context.Context, env *v1.EnvVar) (string, bool, error) {
	if f.readVolume == nil {
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
	// The set of reasons is closed: nothing that a workload chose may get into a label.
	reason := envfile.ReasonReadFailed
	if cause := (*envfile.Error)(nil); goerrors.As(err, &cause) {
		reason = cause.Reason
	}
	metrics.EnvFileErrorsTotal.WithLabelValues(string(reason)).Inc()
	if f.explain != nil {
		err = f.explain(ref, err)
	}
	return "", false, fmt.Errorf("couldn't set variable %q of container %q from key %q of env file %q in volume %q: %w",
		envfile.Short(env.Name), f.container.Name, envfile.Short(ref.Key), envfile.Short(ref.Path), ref.VolumeName, err)
}

func (f *containerEnvFiles) lookup(ctx context.Context, ref *v1.FileKeySelector) (string, error) {
	// The API server of v1.34 and later accepts it, and no env file can have it.
	if len(ref.Key) > envfile.MaxNameBytes {
		return "", envfile.ErrLimitExceeded
	}
	if f.files == nil {
		f.collectKeys()
	}
	file := f.file(ref)
	if !file.isRead {
		file.values, file.err = f.read(ctx, file)
		file.isRead = true
	}
	if file.err != nil {
		return "", file.err
	}
	return file.values.Lookup(ref.Key)
}

// read reads a file within the deadline of this start. A reading takes a fraction of a
// second at most, so that it is enough to ask before each whether the pod ends.
func (f *containerEnvFiles) read(ctx context.Context, file *envFile) (*envfile.Values, error) {
	if f.podEnds() {
		return nil, envfile.ErrInterrupted
	}
	if f.deadline.IsZero() {
		f.deadline = time.Now().Add(envFilesTimeout)
	}
	ctx, cancel := context.WithDeadline(ctx, f.deadline)
	defer cancel()
	return f.readVolume(ctx, file.id, file.keys)
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
	// Two spellings of a path are one file.
	path := ref.Path
	if f.slashIsRoot {
		path = strings.TrimLeft(path, "/")
	}
	id := envFileID{volume: ref.VolumeName, path: envfile.CleanPath(path)}
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

// readEnvFile reads the file at path below root, and measures how long it takes.
func readEnvFile(ctx context.Context, root, path string, keys []string, options envfile.Options) (*envfile.Values, error) {
	start := time.Now()
	defer func() { metrics.EnvFileReadDuration.Observe(metrics.SinceInSeconds(start)) }()
	return envfile.Read(ctx, root, path, keys, options)
}
