package nodes

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"podenv.dev/featuregates"
)

const (
	first  = "kube-apiserver"        // the container and the static pod of the node's API server
	second = "kube-apiserver-second" // the static pod of the second one

	portFlag = "--secure-port="
)

// secondManifest returns manifest, that of the first API server, for a second one on another
// port, with changes.
func secondManifest(manifest string, port int, change func(pod *v1.Pod, c *v1.Container) error) (string, error) {
	var pod v1.Pod
	if err := yaml.Unmarshal([]byte(manifest), &pod); err != nil {
		return "", err
	}
	at := slices.IndexFunc(pod.Spec.Containers, func(c v1.Container) bool { return c.Name == first })
	if at < 0 {
		return "", fmt.Errorf("the pod has no container %s", first)
	}
	c := &pod.Spec.Containers[at]
	pod.Name = second
	pod.UID = "" // a node operation may have set the first one's
	pod.Annotations = nil
	pod.Labels = map[string]string{"component": second}
	// When it ends, it only serves watches, which continue at the other server.
	pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(5))
	// A full node must not evict other pods for it.
	c.Resources = v1.ResourceRequirements{}

	// Since v1.34 kubeadm declares the port, which only one pod of the node can have.
	c.Ports = nil

	flag := slices.IndexFunc(c.Command, func(flag string) bool { return strings.HasPrefix(flag, portFlag) })
	if flag < 0 {
		return "", fmt.Errorf("%s has no flag %s", first, portFlag)
	}
	c.Command[flag] = fmt.Sprint(portFlag, port)
	// Both have the same address, with which the first one is an endpoint of the Service kubernetes.
	c.Command = append(c.Command, "--endpoint-reconciler-type=none")
	if err := change(&pod, c); err != nil {
		return "", err
	}
	for _, probe := range []*v1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil && probe.HTTPGet != nil {
			probe.HTTPGet.Port = intstr.FromInt(port)
		}
	}
	text, err := yaml.Marshal(pod)
	return string(text), err
}

// gatesOff turns gates off, with the switches beside them, and leaves all others as they are.
func gatesOff(off []string) func(*v1.Pod, *v1.Container) error {
	return func(_ *v1.Pod, c *v1.Container) error {
		gates, err := featuregates.FromCommand(c.Command)
		for _, name := range off {
			gates[name] = false
		}
		c.Command = featuregates.SetInCommand(first, c.Command, gates)
		return err
	}
}

// flagsAdded adds flags, and mounts a folder of the node at the same path.
func flagsAdded(folder string, flags []string) func(*v1.Pod, *v1.Container) error {
	return func(pod *v1.Pod, c *v1.Container) error {
		c.Command = append(c.Command, flags...)
		const volume = "podenv"
		source := v1.HostPathVolumeSource{Path: folder, Type: ptr.To(v1.HostPathDirectoryOrCreate)}
		pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: volume, VolumeSource: v1.VolumeSource{HostPath: &source}})
		c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: volume, MountPath: folder})
		return nil
	}
}
