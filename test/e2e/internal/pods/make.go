package pods

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Once is a pod that runs containers once.
func Once(name string, containers ...v1.Container) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: containers},
	}
}

// Dumps is a container without a shell that prints its environment.
func Dumps(name string, env ...v1.EnvVar) v1.Container {
	return v1.Container{Name: name, Image: Envdump, ImagePullPolicy: v1.PullNever, Env: env}
}

// FromEnvFile is a variable from a key of an env file in a volume. With a nil optional, the
// field is not set.
func FromEnvFile(name, volume, path, key string, optional *bool) v1.EnvVar {
	return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{
		FileKeyRef: &v1.FileKeySelector{VolumeName: volume, Path: path, Key: key, Optional: optional},
	}}
}

// WriteEnvFile returns a shell command that writes an env file with the variables env, each
// as NAME=VALUE. The shell expands references in them. Kubelets of all minors read the file
// alike: it has the form of test/corpus/both-forms.env. No value may contain a single quote.
func WriteEnvFile(file string, env ...string) string {
	var quoted strings.Builder
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		fmt.Fprintf(&quoted, "NEXT= \\\\\n%s='%s'\n", name, value)
	}
	return fmt.Sprintf("cat > %s <<END\nDOTENV='\n%s\nQUOTED='\n%sEND\n", file, strings.Join(env, "\n"), quoted.String())
}

// EmptyDir is a volume that lives as long as the pod.
func EmptyDir(name string) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}
}
