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

package inject

import (
	"fmt"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// FuzzInto compares an injection with a model that is written from the document alone: each
// preset in turn is compared item by item with the pod as it is by then, and is copied into
// a new pod if no item differs. A second injection has to change nothing.
func FuzzInto(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("one of each kind of container, and presets that redefine what others have"))
	f.Add([]byte{2, 1, 0, 1, 1, 2, 0, 1, 1, 1, 0, 2, 1, 2, 1, 1, 2, 2, 0, 1, 0, 2, 1, 1})
	f.Add([]byte("\x01\x02\x03\x01\x02\x03\x00\x01\x01\x01\x02\x02\x03\x03\x01\x00\x02\x01\x03\x02\x01"))

	f.Fuzz(func(t *testing.T, shape []byte) {
		g := &generator{bytes: shape}
		pod := g.pod()
		var presets []*Preset
		for i, n := 0, g.upTo(4); i < n; i++ {
			presets = append(presets, g.preset(i))
		}
		want := pod.DeepCopy()
		applied := model(want, presets)

		result := Into(pod, presets, Options{})
		var got []string
		for _, p := range result.Applied {
			got = append(got, p.Name)
		}
		if !reflect.DeepEqual(got, applied) {
			t.Fatalf("applied %q, want %q\n%v", got, applied, pod)
		}
		if !reflect.DeepEqual(pod, want) {
			t.Fatalf("the pod is\n%v\nwant\n%v", pod, want)
		}
		Into(pod, presets, Options{})
		if !reflect.DeepEqual(pod, want) {
			t.Fatalf("after a second injection the pod is\n%v\nwant\n%v", pod, want)
		}
	})
}

// model injects presets and returns the names of those that it applied.
func model(pod *v1.Pod, presets []*Preset) []string {
	var applied []string
	for _, p := range presets {
		changed := pod.DeepCopy()
		if !modelOf(changed, p) {
			continue
		}
		if changed.Annotations == nil {
			changed.Annotations = map[string]string{}
		}
		changed.Annotations["podpreset.admission.kubernetes.io/podpreset-"+p.Name] = p.ResourceVersion
		*pod = *changed
		applied = append(applied, p.Name)
	}
	return applied
}

// modelOf returns false where an item of p is in pod already, and is another.
func modelOf(pod *v1.Pod, p *Preset) bool {
	var containers []*v1.Container
	for i := range pod.Spec.InitContainers {
		containers = append(containers, &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		containers = append(containers, &pod.Spec.Containers[i])
	}
	for _, c := range containers {
		for _, want := range p.Env {
			found := false
			for _, have := range c.Env {
				if have.Name == want.Name && have.Value != want.Value {
					return false
				}
				found = found || have.Name == want.Name
			}
			if !found {
				c.Env = append(c.Env, want)
			}
		}
		for _, want := range p.VolumeMounts {
			found := false
			for _, have := range c.VolumeMounts {
				if have.MountPath == want.MountPath && have.Name != want.Name {
					return false
				}
				found = found || have.MountPath == want.MountPath
			}
			if !found {
				c.VolumeMounts = append(c.VolumeMounts, want)
			}
		}
	}
	for _, want := range p.Volumes {
		found := false
		for _, have := range pod.Spec.Volumes {
			if have.Name == want.Name && !reflect.DeepEqual(have, want) {
				return false
			}
			found = found || have.Name == want.Name
		}
		if !found {
			pod.Spec.Volumes = append(pod.Spec.Volumes, *want.DeepCopy())
		}
	}
	return true
}

// generator makes pods and presets of few names and values, so that they often meet.
type generator struct{ bytes []byte }

// upTo is a number from 0 to n-1.
func (g *generator) upTo(n int) int {
	if len(g.bytes) == 0 {
		return 0
	}
	b := g.bytes[0]
	g.bytes = g.bytes[1:]
	return int(b) % n
}

func (g *generator) env() []v1.EnvVar {
	var env []v1.EnvVar
	for name, n := 0, g.upTo(4); name < n; name++ {
		if g.upTo(2) == 0 {
			env = append(env, v1.EnvVar{Name: fmt.Sprintf("NAME_%d", name), Value: fmt.Sprint(g.upTo(2))})
		}
	}
	return env
}

// volumes are volumes, and a mount of each.
func (g *generator) volumes() (volumes []v1.Volume, mounts []v1.VolumeMount) {
	for i, n := 0, g.upTo(3); i < n; i++ {
		volume := emptyDir(fmt.Sprintf("volume-%d", i))
		if g.upTo(3) == 0 {
			volume = hostPath(volume.Name, "/srv")
		}
		volumes = append(volumes, volume)
		mounts = append(mounts, v1.VolumeMount{Name: volume.Name, MountPath: fmt.Sprintf("/path/%d", i+g.upTo(2)*n)})
	}
	return volumes, mounts
}

func (g *generator) pod() *v1.Pod {
	pod := website(nil)
	volumes, mounts := g.volumes()
	pod.Spec.Volumes = volumes
	pod.Spec.Containers = nil
	for i, n := 0, 1+g.upTo(2); i < n; i++ {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: fmt.Sprintf("c%d", i), Env: g.env(), VolumeMounts: mounts})
	}
	for i, n := 0, g.upTo(2); i < n; i++ {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, v1.Container{Name: fmt.Sprintf("i%d", i), Env: g.env()})
	}
	return pod
}

func (g *generator) preset(i int) *Preset {
	p := &Preset{Name: fmt.Sprintf("p%d", i), UID: types.UID(fmt.Sprint(i)), ResourceVersion: "1", Selector: labels.Everything()}
	p.Env = g.env()
	p.Volumes, p.VolumeMounts = g.volumes()
	return p
}
