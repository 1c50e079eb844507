package inject

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Conflict is a preset that a pod does not get, or that some of its containers do not get.
type Conflict struct {
	Preset *Preset
	// Reasons are sentences without the full stop. None of them has a value.
	Reasons []string
}

// Message is the text of the event on the pod, at most about 3 KiB.
func (c Conflict) Message() string {
	return "Conflict on pod preset. " + strings.Join(c.Reasons, ". ") + "."
}

const maxReasons = 10

// reasonList gathers the distinct reasons of a conflict.
type reasonList struct {
	reasons []string
	more    int
}

func (r *reasonList) add(reason string) {
	if slices.Contains(r.reasons, reason) {
		return
	}
	if len(r.reasons) == maxReasons {
		r.more++
		return
	}
	r.reasons = append(r.reasons, reason)
}

// addContainer adds why a container gets nothing of a preset that others have.
func (r *reasonList) addContainer(name string, reasons []string) {
	r.add("Container " + show(name) + " gets nothing of it")
	for _, reason := range reasons {
		r.add(reason)
	}
}

func (r *reasonList) addEach(start string, names []string) {
	for _, name := range names {
		r.add(start + show(name))
	}
}

func (r *reasonList) sentences() []string {
	if r.more > 0 {
		return append(r.reasons, fmt.Sprintf("And %d more", r.more))
	}
	return r.reasons
}

// checkDevices finds mounts that the raw block devices of c leave no room for.
func (a *attempt) checkDevices(c *v1.Container, mounts []v1.VolumeMount, r *reasonList) {
	paths, volumes := map[string]bool{}, map[string]bool{}
	for _, device := range c.VolumeDevices {
		paths[cleanPath(device.DevicePath)], volumes[device.Name] = true, true
	}
	for _, mount := range mounts {
		if paths[mountPath(&mount)] {
			r.add("Duplicate mountPath " + show(mount.MountPath))
		} else if volumes[mount.Name] {
			r.add(fmt.Sprintf("Volume %s is a device of container %s", show(mount.Name), show(c.Name)))
		}
	}
}

// checkPrivileges finds mounts that only a privileged container may have.
func (a *attempt) checkPrivileges(c *v1.Container, mounts []v1.VolumeMount, r *reasonList) {
	if c.SecurityContext != nil && c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged {
		return
	}
	for _, mount := range mounts {
		if mount.MountPropagation != nil && *mount.MountPropagation == v1.MountPropagationBidirectional {
			r.add(fmt.Sprintf("mountPath %s is Bidirectional, and container %s is not privileged", show(mount.MountPath), show(c.Name)))
		}
	}
}

// checkClaims finds ephemeral volumes whose claim could not be made, or would be the claim
// of another volume. The name of a claim follows from the pod's, so that nothing is
// known of a pod whose name is yet to be generated; such a name is short enough.
func (a *attempt) checkClaims(r *reasonList) {
	if len(a.volumes) == 0 {
		return
	}
	const maxLength = 253
	made, used := map[string][]string{}, map[string][]string{} // volumes, by claim
	for _, volumes := range [][]v1.Volume{a.pod.Spec.Volumes, a.volumes} {
		for i := range volumes {
			if claim := a.madeClaim(&volumes[i]); claim != "" {
				made[claim] = append(made[claim], volumes[i].Name)
			}
			if claim := usedClaim(&volumes[i]); claim != "" {
				used[claim] = append(used[claim], volumes[i].Name)
			}
		}
	}
	for i := range a.volumes {
		volume := &a.volumes[i]
		claim := a.madeClaim(volume)
		if len(claim) > maxLength {
			r.add(fmt.Sprintf("The names of the pod and of volume %s are too long for a claim", show(volume.Name)))
		}
		others := made[usedClaim(volume)]
		if claim != "" {
			others = used[claim]
		}
		// A pod that is not valid may have the name of one volume many times.
		if !a.more(len(others)) {
			r.add(tooMuch)
			return
		}
		for _, other := range others {
			r.add(fmt.Sprintf("Volumes %s and %s have the same claim", show(volume.Name), show(other)))
		}
	}
}

// madeClaim is the claim that is made for an ephemeral volume, or "".
func (a *attempt) madeClaim(volume *v1.Volume) string {
	if volume.Ephemeral == nil {
		return ""
	}
	return a.pod.Name + "-" + volume.Name
}

// usedClaim is the claim that a volume names, or "".
func usedClaim(volume *v1.Volume) string {
	if volume.PersistentVolumeClaim == nil {
		return ""
	}
	return volume.PersistentVolumeClaim.ClaimName
}

// checkTokens finds volumes with a token of the service account that the pod does not have.
func (a *attempt) checkTokens(r *reasonList) {
	if !a.options.NoServiceAccount || a.pod.Spec.ServiceAccountName != "" {
		return
	}
	for i := range a.volumes {
		volume := &a.volumes[i]
		if volume.Projected == nil {
			continue
		}
		if slices.ContainsFunc(volume.Projected.Sources, func(s v1.VolumeProjection) bool { return s.ServiceAccountToken != nil }) {
			r.add(fmt.Sprintf("Volume %s has a token of a service account, and the pod names none", show(volume.Name)))
		}
	}
}

const (
	// maxAnnotations is how many bytes all annotations of an object can have.
	maxAnnotations = 256 * 1024
	// maxPod is how many bytes a pod can have with what presets add to it: etcd takes
	// 1.5 MiB, and status and managed fields need room.
	maxPod = 1024 * 1024
	// smallPod is what presets can add without a look at the size of the pod.
	smallPod = 64 * 1024
)

// checkAnnotations finds pods that have no room for the annotation of the preset.
func (a *attempt) checkAnnotations(r *reasonList) {
	key := AppliedAnnotation(a.preset.Name)
	if _, ok := a.pod.Annotations[key]; ok {
		return
	}
	size := len(key) + len(a.preset.ResourceVersion)
	for key, value := range a.pod.Annotations {
		size += len(key) + len(value)
	}
	if size > maxAnnotations {
		r.add("The pod has no room for another annotation")
	}
}

// tooLarge tells whether the pod could not be stored with what has been found to be added.
func (a *attempt) tooLarge() bool {
	if a.bytes <= smallPod {
		return false
	}
	if a.podSize == 0 {
		a.podSize = a.pod.Size()
	}
	return a.podSize+a.bytes > maxPod
}

// sizeOf is about how many bytes items have in a stored pod.
func sizeOf[T any, P interface {
	*T
	Size() int
}](items []T) (bytes int) {
	for i := range items {
		bytes += P(&items[i]).Size()
	}
	return bytes
}
