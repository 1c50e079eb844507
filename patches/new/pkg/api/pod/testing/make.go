// Package testing makes valid pods for tests, under the names that later
// releases have for it.
package testing

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	api "k8s.io/kubernetes/pkg/apis/core"
)

// Tweak changes a pod.
type Tweak func(*api.Pod)

// TweakContainer changes a container.
type TweakContainer func(*api.Container)

// MakePod returns a valid pod with one container. It has what defaulting would
// set.
func MakePod(name string, tweaks ...Tweak) *api.Pod {
	gracePeriod := int64(v1.DefaultTerminationGracePeriodSeconds)
	pod := &api.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}}
	pod.Spec = api.PodSpec{
		DNSPolicy:                     api.DNSClusterFirst,
		RestartPolicy:                 api.RestartPolicyAlways,
		TerminationGracePeriodSeconds: &gracePeriod,
		Containers:                    []api.Container{MakeContainer("ctr")},
	}
	for i := range tweaks {
		tweaks[i](pod)
	}
	return pod
}

// MakePodSpec returns the spec of a valid pod.
func MakePodSpec(tweaks ...Tweak) api.PodSpec { return MakePod("", tweaks...).Spec }

// MakeContainer returns a valid container.
func MakeContainer(name string, tweaks ...TweakContainer) api.Container {
	container := api.Container{
		Name:                     name,
		Image:                    "image",
		ImagePullPolicy:          api.PullIfNotPresent,
		TerminationMessagePath:   v1.TerminationMessagePathDefault,
		TerminationMessagePolicy: api.TerminationMessageReadFile,
	}
	for i := range tweaks {
		tweaks[i](&container)
	}
	return container
}

// MakeEmptyVolume returns an emptyDir volume.
func MakeEmptyVolume(name string) api.Volume {
	volume := api.Volume{Name: name}
	volume.EmptyDir = &api.EmptyDirVolumeSource{}
	return volume
}

// MakeResourceRequirements parses requests and limits.
func MakeResourceRequirements(requests, limits map[string]string) api.ResourceRequirements {
	parse := func(quantities map[string]string) api.ResourceList {
		list := make(api.ResourceList, len(quantities))
		for name, quantity := range quantities {
			list[api.ResourceName(name)] = resource.MustParse(quantity)
		}
		return list
	}
	return api.ResourceRequirements{Requests: parse(requests), Limits: parse(limits)}
}

// SetContainers sets the pod's containers.
func SetContainers(containers ...api.Container) Tweak {
	return func(pod *api.Pod) { pod.Spec.Containers = containers }
}

// SetInitContainers sets the pod's init containers.
func SetInitContainers(containers ...api.Container) Tweak {
	return func(pod *api.Pod) { pod.Spec.InitContainers = containers }
}

// SetEphemeralContainers sets the pod's ephemeral containers.
func SetEphemeralContainers(containers ...api.EphemeralContainer) Tweak {
	return func(pod *api.Pod) { pod.Spec.EphemeralContainers = containers }
}

// SetVolumes sets the pod's volumes.
func SetVolumes(volumes ...api.Volume) Tweak {
	return func(pod *api.Pod) { pod.Spec.Volumes = volumes }
}

// SetObjectMeta sets the pod's metadata.
func SetObjectMeta(meta metav1.ObjectMeta) Tweak {
	return func(pod *api.Pod) { pod.ObjectMeta = meta }
}

// SetStatus sets the pod's status.
func SetStatus(status api.PodStatus) Tweak {
	return func(pod *api.Pod) { pod.Status = status }
}

// SetTerminationGracePeriodSeconds sets the pod's grace period, in seconds.
func SetTerminationGracePeriodSeconds(seconds int64) Tweak {
	return func(pod *api.Pod) { pod.Spec.TerminationGracePeriodSeconds = &seconds }
}
