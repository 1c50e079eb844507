package pods

import (
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

// EmptyDir is a volume that lives as long as the pod.
func EmptyDir(name string) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}
}
