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

	gatesFlag = "--feature-gates="
	portFlag  = "--secure-port="

	podPreset = string(featuregates.PodPreset)
)

// secondManifest returns manifest, that of the first API server, for a second one on another
// port, with changes.
func secondManifest(manifest string, port int, change func(pod *v1.Pod, c *v1.Container)) (string, error) {
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
	change(&pod, c)
	for _, probe := range []*v1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil && probe.HTTPGet != nil {
			probe.HTTPGet.Port = intstr.FromInt(port)
		}
	}
	text, err := yaml.Marshal(pod)
	return string(text), err
}

// gatesOff turns gates off. Without the gate PodPreset, it also removes the API and the plugin.
func gatesOff(off []string) func(*v1.Pod, *v1.Container) {
	return func(_ *v1.Pod, c *v1.Container) {
		c.Command = withGatesOff(c.Command, off)
		if slices.Contains(off, podPreset) {
			c.Command = withoutPodPreset(c.Command)
		}
	}
}

// flagsAdded adds flags, and mounts a folder of the node at the same path.
func flagsAdded(folder string, flags []string) func(*v1.Pod, *v1.Container) {
	return func(pod *v1.Pod, c *v1.Container) {
		c.Command = append(c.Command, flags...)
		const volume = "podenv"
		source := v1.HostPathVolumeSource{Path: folder, Type: ptr.To(v1.HostPathDirectoryOrCreate)}
		pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: volume, VolumeSource: v1.VolumeSource{HostPath: &source}})
		c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: volume, MountPath: folder})
	}
}

// withGatesOff returns the flags with gates off and all others as they are.
func withGatesOff(flags, off []string) []string {
	var out, pairs []string
	for _, flag := range flags {
		list, ok := strings.CutPrefix(flag, gatesFlag)
		if !ok {
			out = append(out, flag)
			continue
		}
		for pair := range strings.SplitSeq(list, ",") {
			if name, _, _ := strings.Cut(pair, "="); !slices.Contains(off, name) {
				pairs = append(pairs, pair)
			}
		}
	}
	for _, gate := range off {
		pairs = append(pairs, gate+"=false")
	}
	return append(out, gatesFlag+strings.Join(pairs, ","))
}

// withoutPodPreset returns the flags without the API and the admission plugin of PodPreset: an
// API server with the plugin and without the gate refuses to start.
func withoutPodPreset(flags []string) []string {
	var out []string
	for _, flag := range flags {
		name, list, _ := strings.Cut(flag, "=")
		if name == "--runtime-config" || name == "--enable-admission-plugins" {
			items := slices.DeleteFunc(strings.Split(list, ","), func(item string) bool {
				return item == podPreset || item == "settings.k8s.io/v1alpha1=true"
			})
			if len(items) == 0 {
				continue
			}
			flag = name + "=" + strings.Join(items, ",")
		}
		out = append(out, flag)
	}
	return out
}
