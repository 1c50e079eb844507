// Package pods creates pods for the suites, waits for their states, and reads the environments
// of their containers.
package pods

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The images of test pods. They are in no registry: podenv loads them onto the nodes of its
// clusters, and the user onto the nodes of other clusters.
const (
	Busybox = "podenv.dev/busybox:1" // a shell and its applets, as root
	Envdump = "podenv.dev/envdump:1" // one static program that prints its environment, and nothing else

	EnvdumpNonroot = "podenv.dev/envdump-nonroot:1" // Envdump with USER 65532
	EnvdumpGroup   = "podenv.dev/envdump-group:1"   // Envdump with USER 1000:2000
	EnvdumpNamed   = "podenv.dev/envdump-named:1"   // Envdump with USER nobody, which its /etc/passwd knows
)

// Images are all of them.
var Images = []string{Busybox, Envdump, EnvdumpNonroot, EnvdumpGroup, EnvdumpNamed}

// HowToLoad is the end of an error about a node that lacks a test image.
const HowToLoad = "podenv loads them into its own clusters; for another one `podenv image` makes them, as _output/cache/testimages/*.tar: " +
	"`kind load image-archive TAR --name CLUSTER` loads them into a kind cluster, `ctr -n k8s.io images import TAR` into any node with containerd"

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
