// Package secondserver makes the manifest of a second API server beside that of a control-plane node,
// on another port and with other flags: two API servers that disagree.
package secondserver

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
	// Name is the static pod of the second API server.
	Name = "kube-apiserver-second"
	// First is the container and the static pod of the node's API server.
	First = "kube-apiserver"
	// FirstManifest and manifestFile are the manifests on the node.
	FirstManifest = folder + First + ".yaml"
	manifestFile  = folder + Name + ".yaml"
	folder        = "/etc/kubernetes/manifests/"
	// Port is the port on which the second API server listens.
	Port = 6444
	// PortFlag is the flag of an API server with its port.
	PortFlag = "--secure-port="

	// Remove is a shell command that stops the second API server.
	Remove = "rm -f " + manifestFile
)

// Install returns a shell command that makes the kubelet of the node run the pod in manifest. The
// kubelet must not read an incomplete manifest; it ignores files that begin with a dot.
func Install(manifest string) string {
	return fmt.Sprintf("cat > %s.%s.new <<'END'\n%s\nEND\nmv %[1]s.%[2]s.new %[4]s", folder, Name, manifest, manifestFile)
}

// Manifest returns manifest, that of the first API server, for a second one on Port, with
// changes.
func Manifest(manifest string, change func(pod *v1.Pod, c *v1.Container) error) (string, error) {
	var pod v1.Pod
	if err := yaml.Unmarshal([]byte(manifest), &pod); err != nil {
		return "", err
	}
	at := slices.IndexFunc(pod.Spec.Containers, func(c v1.Container) bool { return c.Name == First })
	if at < 0 {
		return "", fmt.Errorf("the pod has no container %s", First)
	}
	c := &pod.Spec.Containers[at]
	pod.Name = Name
	pod.UID = "" // a node operation may have set the first one's
	pod.Annotations = nil
	pod.Labels = map[string]string{"component": Name}
	// When it ends, it only serves watches, which continue at the other server.
	pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(5))
	// A full node must not evict other pods for it.
	c.Resources = v1.ResourceRequirements{}

	// Since v1.34 kubeadm declares the port, which only one pod of the node can have.
	c.Ports = nil

	flag := slices.IndexFunc(c.Command, func(flag string) bool { return strings.HasPrefix(flag, PortFlag) })
	if flag < 0 {
		return "", fmt.Errorf("%s has no flag %s", First, PortFlag)
	}
	c.Command[flag] = fmt.Sprint(PortFlag, Port)
	// Both have the same address, with which the first one is an endpoint of the Service kubernetes.
	c.Command = append(c.Command, "--endpoint-reconciler-type=none")
	if err := change(&pod, c); err != nil {
		return "", err
	}
	for _, probe := range []*v1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil && probe.HTTPGet != nil {
			probe.HTTPGet.Port = intstr.FromInt(Port)
		}
	}
	text, err := yaml.Marshal(pod)
	return string(text), err
}

// GatesOff turns gates off, with the switches beside them, and leaves all others as they are.
func GatesOff(off []string) func(*v1.Pod, *v1.Container) error {
	return func(_ *v1.Pod, c *v1.Container) error {
		gates, err := featuregates.FromCommand(c.Command)
		for _, name := range off {
			gates[name] = false
		}
		c.Command = featuregates.SetInCommand(First, c.Command, gates)
		return err
	}
}

// FlagsSet sets flags, each in place of those of its name, and mounts a folder of the node at the same path.
func FlagsSet(folder string, flags []string) func(*v1.Pod, *v1.Container) error {
	return func(pod *v1.Pod, c *v1.Container) error {
		for _, flag := range flags {
			name, _, _ := strings.Cut(flag, "=")
			c.Command = slices.DeleteFunc(c.Command, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		}
		c.Command = append(c.Command, flags...)
		const volume = "podenv"
		source := v1.HostPathVolumeSource{Path: folder, Type: ptr.To(v1.HostPathDirectoryOrCreate)}
		pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: volume, VolumeSource: v1.VolumeSource{HostPath: &source}})
		c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: volume, MountPath: folder})
		return nil
	}
}
