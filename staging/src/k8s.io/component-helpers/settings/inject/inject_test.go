package inject

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestIntoInjectsIntoEachContainer(t *testing.T) {
	pod := website(func(pod *v1.Pod) {
		always := v1.ContainerRestartPolicyAlways
		pod.Spec.InitContainers = []v1.Container{{Name: "init"}, {Name: "sidecar", RestartPolicy: &always}}
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "second", Env: []v1.EnvVar{{Name: "FIRST", Value: "1"}}})
	})
	p := database()
	result := into(pod, []*Preset{p}, Options{})
	if len(result.Conflicts) > 0 || len(result.Applied) != 1 {
		t.Fatalf("%d applied, conflicts %v", len(result.Applied), result.Conflicts)
	}
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		if last := c.Env[len(c.Env)-1]; last != p.Env[0] {
			t.Errorf("%s has the last variable %v, want %v", c.Name, last, p.Env[0])
		}
		if !reflect.DeepEqual(c.VolumeMounts, p.VolumeMounts) {
			t.Errorf("%s has the mounts %v, want %v", c.Name, c.VolumeMounts, p.VolumeMounts)
		}
	}
	if !reflect.DeepEqual(pod.Spec.Volumes, p.Volumes) {
		t.Errorf("volumes: %v, want %v", pod.Spec.Volumes, p.Volumes)
	}
	want := map[string]string{"podpreset.admission.kubernetes.io/podpreset-allow-database": "7"}
	if !reflect.DeepEqual(pod.Annotations, want) {
		t.Errorf("annotations: %v, want %v", pod.Annotations, want)
	}
}

// TestWhoWritesAFileDoesNotWaitForIt has init containers that do, and do not, mount the volume.
func TestWhoWritesAFileDoesNotWaitForIt(t *testing.T) {
	p := preset("p", func(p *Preset) { p.Env = []v1.EnvVar{{Name: "PLAIN"}, fileVar("FILE", "env")} })
	pod := website(func(pod *v1.Pod) {
		pod.Spec.Volumes = []v1.Volume{emptyDir("env")}
		pod.Spec.InitContainers = []v1.Container{{Name: "writer", VolumeMounts: []v1.VolumeMount{{Name: "env", MountPath: "/env"}}}, {Name: "reader"}}
	})
	into(pod, []*Preset{p}, Options{})
	for _, c := range containersOf(pod) {
		want := p.Env
		if c.Name == "writer" {
			want = p.Env[:1]
		}
		if !reflect.DeepEqual(c.Env, want) {
			t.Errorf("%s has %v, want %v", c.Name, c.Env, want)
		}
	}
}

func TestIntoLeavesOtherPodsAlone(t *testing.T) {
	pod := website(func(pod *v1.Pod) { pod.Labels["role"] = "backend" })
	before := pod.DeepCopy()
	if result := into(pod, []*Preset{database()}, Options{}); len(result.Applied)+len(result.Conflicts) > 0 {
		t.Errorf("got %+v for a pod that does not match", result)
	}
	if !reflect.DeepEqual(pod, before) {
		t.Errorf("the pod has changed: %v", pod)
	}
}

// TestConflicts has a pod that is in conflict with the one preset, so that nothing of it
// is injected, or in none, where message is empty.
func TestConflicts(t *testing.T) {
	bidirectional := v1.MountPropagationBidirectional
	hostToContainer := v1.MountPropagationHostToContainer
	yes, no := true, false
	optional := configMap("settings")
	optional.ConfigMapRef.Optional = &yes
	secret := v1.EnvFromSource{SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "login"}}}
	block := v1.Volume{Name: "disk", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "disk"}}}
	bidirectionalMount := func(p *Preset) {
		p.Volumes = []v1.Volume{hostPath("data", "/srv")}
		p.VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data", MountPropagation: &bidirectional}}
	}
	bringToken := func(p *Preset) {
		p.Volumes = []v1.Volume{{Name: "token", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{
			Sources: []v1.VolumeProjection{{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token"}}}}}}}
		p.VolumeMounts = []v1.VolumeMount{{Name: "token", MountPath: "/token"}}
	}
	projected := v1.Volume{Name: "info", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{
		Sources: []v1.VolumeProjection{{DownwardAPI: &v1.DownwardAPIProjection{}}}}}}
	// As many bytes of annotations as leave room for that of allow-database.
	room := maxAnnotations - len(AppliedAnnotation("allow-database")) - len("7") - len("a")
	ephemeral := v1.Volume{Name: "scratch", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}}
	bringEphemeral := func(p *Preset) {
		p.Volumes = []v1.Volume{ephemeral}
		p.VolumeMounts = []v1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}}
	}
	fillers := func() (env []v1.EnvVar) { // more than are searched one by one
		for i := 0; i < 17; i++ {
			env = append(env, v1.EnvVar{Name: fmt.Sprint("N", i)})
		}
		return env
	}
	keys := func(s *v1.EnvFromSource) []string {
		switch {
		case s.SecretRef != nil:
			return []string{"PASSWORD"}
		case s.ConfigMapRef.Name == "settings", s.ConfigMapRef.Name == "theme":
			return []string{"COLOR"}
		case s.ConfigMapRef.Name == "many", s.ConfigMapRef.Name == "all":
			return []string{"SIZE", "COLOR"}
		}
		return nil
	}
	tests := []struct {
		name    string
		preset  func(*Preset)
		pod     func(*v1.Pod)
		options Options
		message string
	}{
		{
			name:   "everything exactly as in the pod",
			preset: func(p *Preset) { *p = *database() },
			pod: func(pod *v1.Pod) {
				pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "DB_PORT", Value: "6379"}}
				pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "cache-volume", MountPath: "/cache"}}
				pod.Spec.Volumes = []v1.Volume{emptyDir("cache-volume")}
			},
		},
		{
			name:    "env with another value",
			preset:  func(p *Preset) { p.Env = []v1.EnvVar{{Name: "DB_PORT", Value: "6379"}} },
			pod:     func(pod *v1.Pod) { pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "DB_PORT", Value: "5432"}} },
			message: "Conflict on pod preset. Duplicate env DB_PORT.",
		},
		{
			name:   "env in an init container",
			preset: func(p *Preset) { p.Env = []v1.EnvVar{{Name: "DB_PORT", Value: "6379"}} },
			pod: func(pod *v1.Pod) {
				pod.Spec.InitContainers = []v1.Container{{Name: "init", Env: []v1.EnvVar{{Name: "DB_PORT"}}}}
			},
			message: "Conflict on pod preset. Duplicate env DB_PORT.",
		},
		{
			name:    "a variable that the preset defines twice, and the pod once",
			preset:  func(p *Preset) { p.Env = []v1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}} },
			pod:     func(pod *v1.Pod) { pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "A", Value: "1"}} },
			message: "Conflict on pod preset. Duplicate env A.",
		},
		{
			name: "a variable that the preset defines twice, and the pod once, among many",
			preset: func(p *Preset) {
				p.Env = append(fillers(), v1.EnvVar{Name: "A", Value: "1"}, v1.EnvVar{Name: "A", Value: "2"})
			},
			pod:     func(pod *v1.Pod) { pod.Spec.Containers[0].Env = append(fillers(), v1.EnvVar{Name: "A", Value: "2"}) },
			message: "Conflict on pod preset. Duplicate env A.",
		},
		{
			name:   "one reason for two containers",
			preset: func(p *Preset) { p.Env = []v1.EnvVar{{Name: "A", Value: "1"}} },
			pod: func(pod *v1.Pod) {
				pod.Spec.Containers = []v1.Container{{Name: "a", Env: []v1.EnvVar{{Name: "A"}}}, {Name: "b", Env: []v1.EnvVar{{Name: "A"}}}}
			},
			message: "Conflict on pod preset. Duplicate env A.",
		},
		{
			name: "several, in the order of the container and the pod",
			preset: func(p *Preset) {
				p.Env = []v1.EnvVar{{Name: "A", Value: "1"}}
				p.Volumes = []v1.Volume{emptyDir("v")}
			},
			pod: func(pod *v1.Pod) {
				pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "A", Value: "2"}}
				pod.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/"}}}}
			},
			message: "Conflict on pod preset. Duplicate env A. Duplicate volume v.",
		},
		{
			name: "the document's last example",
			preset: func(p *Preset) {
				*p = *database()
				p.VolumeMounts[0].Name, p.Volumes[0].Name = "other-volume", "other-volume"
			},
			pod: func(pod *v1.Pod) {
				pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "cache-volume", MountPath: "/cache"}}
				pod.Spec.Volumes = []v1.Volume{emptyDir("cache-volume")}
			},
			message: "Conflict on pod preset. Duplicate mountPath /cache.",
		},
		{
			name: "a path that is written otherwise",
			preset: func(p *Preset) {
				p.Volumes = []v1.Volume{emptyDir("other")}
				p.VolumeMounts = []v1.VolumeMount{{Name: "other", MountPath: "/cache/"}}
			},
			pod: func(pod *v1.Pod) {
				pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "cache-volume", MountPath: "//cache/."}}
				pod.Spec.Volumes = []v1.Volume{emptyDir("cache-volume")}
			},
			message: "Conflict on pod preset. Duplicate mountPath /cache.",
		},
		{
			name: "a path on Windows",
			preset: func(p *Preset) {
				p.Volumes = []v1.Volume{emptyDir("other")}
				p.VolumeMounts = []v1.VolumeMount{{Name: "other", MountPath: `C:\cache`}}
			},
			pod: func(pod *v1.Pod) {
				pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "cache-volume", MountPath: `C:\cache`}}
				pod.Spec.Volumes = []v1.Volume{emptyDir("cache-volume")}
			},
			message: `Conflict on pod preset. Duplicate mountPath C:\cache.`,
		},
		{
			name:   "the same mount, its path written otherwise",
			preset: func(p *Preset) { *p = *database() },
			pod: func(pod *v1.Pod) {
				pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "cache-volume", MountPath: "cache/"}}
				pod.Spec.Volumes = []v1.Volume{emptyDir("cache-volume")}
			},
		},
		{
			name: "a device's path that is written otherwise",
			preset: func(p *Preset) {
				p.Volumes = []v1.Volume{emptyDir("data")}
				p.VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/dev/disk"}}
			},
			pod: func(pod *v1.Pod) {
				pod.Spec.Volumes = []v1.Volume{block}
				pod.Spec.Containers[0].VolumeDevices = []v1.VolumeDevice{{Name: "disk", DevicePath: "/dev/disk/"}}
			},
			message: "Conflict on pod preset. Duplicate mountPath /dev/disk.",
		},
		{
			name: "the pod's env is the preset's own, and the preset's envFrom brings it too",
			preset: func(p *Preset) {
				p.Env, p.EnvFrom = []v1.EnvVar{{Name: "COLOR", Value: "red"}}, []v1.EnvFromSource{configMap("settings")}
			},
			pod:     func(pod *v1.Pod) { pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "COLOR", Value: "red"}} },
			options: Options{Keys: keys},
		},
		{
			name:    "envFrom over envFrom",
			preset:  func(p *Preset) { p.EnvFrom = []v1.EnvFromSource{configMap("settings")} },
			pod:     func(pod *v1.Pod) { pod.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{configMap("theme")} },
			options: Options{Keys: keys},
			message: "Conflict on pod preset. Duplicate env COLOR, which envFrom ConfigMap theme sets too.",
		},
		{
			name:    "envFrom over envFrom, which bring several keys",
			preset:  func(p *Preset) { p.EnvFrom = []v1.EnvFromSource{configMap("many")} },
			pod:     func(pod *v1.Pod) { pod.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{configMap("all")} },
			options: Options{Keys: keys},
			message: "Conflict on pod preset. Duplicate env COLOR, which envFrom ConfigMap all sets too. Duplicate env SIZE, which envFrom ConfigMap all sets too.",
		},
		{
			name:   "env that a Secret sets, behind a source with a longer prefix",
			preset: func(p *Preset) { p.Env = []v1.EnvVar{{Name: "PASSWORD"}} },
			pod: func(pod *v1.Pod) {
				pod.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{{Prefix: "LONGER_THAN_THE_NAME_", ConfigMapRef: optional.ConfigMapRef}, secret}
			},
			options: Options{Keys: keys},
			message: "Conflict on pod preset. Duplicate env PASSWORD, which envFrom Secret login sets too.",
		},
		{
			name:   "envFrom of a Secret with another optional",
			preset: func(p *Preset) { p.EnvFrom = []v1.EnvFromSource{secret} },
			pod: func(pod *v1.Pod) {
				pod.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{*secret.DeepCopy()}
				pod.Spec.Containers[0].EnvFrom[0].SecretRef.Optional = &yes
			},
			message: "Conflict on pod preset. Duplicate envFrom Secret login.",
		},
		{
			name: "envFrom over envFrom, where an env decides over both",
			preset: func(p *Preset) {
				p.EnvFrom = []v1.EnvFromSource{configMap("settings")}
				p.Env = []v1.EnvVar{{Name: "COLOR", Value: "red"}}
			},
			pod: func(pod *v1.Pod) {
				pod.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{configMap("theme")}
				pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "COLOR", Value: "red"}}
			},
			options: Options{Keys: keys},
		},
		{
			name: "two mounts of one volume at two paths",
			preset: func(p *Preset) {
				p.Volumes = []v1.Volume{emptyDir("data")}
				p.VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/b", SubPath: "b"}, {Name: "data", MountPath: "/c"}}
			},
			pod: func(pod *v1.Pod) {
				pod.Spec.Volumes = []v1.Volume{emptyDir("data")}
				pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/a"}}
			},
		},
		{
			name: "a volume with another source",
			preset: func(p *Preset) {
				p.Volumes = []v1.Volume{emptyDir("data")}
				p.VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
			},
			pod:     func(pod *v1.Pod) { pod.Spec.Volumes = []v1.Volume{hostPath("data", "/srv")} },
			message: "Conflict on pod preset. Duplicate volume data.",
		},
		{
			name:    "envFrom with another optional",
			preset:  func(p *Preset) { p.EnvFrom = []v1.EnvFromSource{configMap("settings")} },
			pod:     func(pod *v1.Pod) { pod.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{optional} },
			message: "Conflict on pod preset. Duplicate envFrom ConfigMap settings.",
		},
		{
			name:   "envFrom with another prefix",
			preset: func(p *Preset) { p.EnvFrom = []v1.EnvFromSource{configMap("settings")} },
			pod: func(pod *v1.Pod) {
				pod.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{{Prefix: "X_", ConfigMapRef: optional.ConfigMapRef}}
			},
		},
		{
			name:    "env that the pod's envFrom brings",
			preset:  func(p *Preset) { p.Env = []v1.EnvVar{{Name: "X_COLOR", Value: "red"}} },
			options: Options{Keys: keys},
			pod: func(pod *v1.Pod) {
				pod.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{{Prefix: "X_", ConfigMapRef: optional.ConfigMapRef}}
			},
			message: "Conflict on pod preset. Duplicate env X_COLOR, which envFrom ConfigMap settings with prefix X_ sets too.",
		},
		{
			name:    "envFrom that brings the pod's env",
			preset:  func(p *Preset) { p.EnvFrom = []v1.EnvFromSource{configMap("settings")} },
			options: Options{Keys: keys},
			pod:     func(pod *v1.Pod) { pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "COLOR", Value: "red"}} },
			message: "Conflict on pod preset. Duplicate env COLOR, which envFrom ConfigMap settings sets too.",
		},
		{
			name:    "env and envFrom of a ConfigMap that is not there",
			preset:  func(p *Preset) { p.EnvFrom = []v1.EnvFromSource{configMap("other")} },
			options: Options{Keys: keys},
			pod:     func(pod *v1.Pod) { pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "COLOR", Value: "red"}} },
		},
		{
			name: "env and envFrom of the preset itself",
			preset: func(p *Preset) {
				p.Env = []v1.EnvVar{{Name: "COLOR", Value: "red"}}
				p.EnvFrom = []v1.EnvFromSource{configMap("settings")}
			},
			options: Options{Keys: keys},
		},
		{
			name: "env and envFrom of the preset, where the pod has the envFrom and relies on what it sets",
			preset: func(p *Preset) {
				p.Env = []v1.EnvVar{{Name: "COLOR", Value: "red"}}
				p.EnvFrom = []v1.EnvFromSource{configMap("settings")}
			},
			options: Options{Keys: keys},
			pod: func(pod *v1.Pod) {
				pod.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{configMap("settings")}
			},
			message: "Conflict on pod preset. Duplicate env COLOR, which envFrom ConfigMap settings sets too.",
		},
		{
			name: "a path of a device",
			preset: func(p *Preset) {
				p.Volumes = []v1.Volume{emptyDir("data")}
				p.VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/dev/xvda"}}
			},
			pod: func(pod *v1.Pod) {
				pod.Spec.Volumes = []v1.Volume{block}
				pod.Spec.Containers[0].VolumeDevices = []v1.VolumeDevice{{Name: "disk", DevicePath: "/dev/xvda"}}
			},
			message: "Conflict on pod preset. Duplicate mountPath /dev/xvda.",
		},
		{
			name:   "a mount beside a device",
			preset: func(p *Preset) { *p = *database() },
			pod: func(pod *v1.Pod) {
				pod.Spec.Volumes = []v1.Volume{block}
				pod.Spec.Containers[0].VolumeDevices = []v1.VolumeDevice{{Name: "disk", DevicePath: "/dev/xvda"}}
			},
		},
		{
			name: "a volume that is a device",
			preset: func(p *Preset) {
				p.Volumes = []v1.Volume{block}
				p.VolumeMounts = []v1.VolumeMount{{Name: "disk", MountPath: "/data"}}
			},
			pod: func(pod *v1.Pod) {
				pod.Spec.Volumes = []v1.Volume{block}
				pod.Spec.Containers[0].VolumeDevices = []v1.VolumeDevice{{Name: "disk", DevicePath: "/dev/xvda"}}
			},
			message: "Conflict on pod preset. Volume disk is a device of container website.",
		},
		{
			name:    "a mount that needs privileges",
			preset:  bidirectionalMount,
			message: "Conflict on pod preset. mountPath /data is Bidirectional, and container website is not privileged.",
		},
		{
			name: "a mount that needs no privileges",
			preset: func(p *Preset) {
				bidirectionalMount(p)
				p.VolumeMounts[0].MountPropagation = &hostToContainer
			},
		},
		{
			name:    "a mount that needs privileges, whose container has none",
			preset:  bidirectionalMount,
			pod:     func(pod *v1.Pod) { pod.Spec.Containers[0].SecurityContext = &v1.SecurityContext{Privileged: &no} },
			message: "Conflict on pod preset. mountPath /data is Bidirectional, and container website is not privileged.",
		},
		{
			name:    "a mount that needs privileges, whose container says nothing of them",
			preset:  bidirectionalMount,
			pod:     func(pod *v1.Pod) { pod.Spec.Containers[0].SecurityContext = &v1.SecurityContext{} },
			message: "Conflict on pod preset. mountPath /data is Bidirectional, and container website is not privileged.",
		},
		{
			name:   "a mount that needs privileges, and has them",
			preset: bidirectionalMount,
			pod:    func(pod *v1.Pod) { pod.Spec.Containers[0].SecurityContext = &v1.SecurityContext{Privileged: &yes} },
		},
		{
			name:   "a variable from a file in a volume of the pod, which an init container writes",
			preset: func(p *Preset) { p.Env = []v1.EnvVar{fileVar("COLOR", "env")} },
			pod: func(pod *v1.Pod) {
				pod.Spec.Volumes = []v1.Volume{emptyDir("env")}
				pod.Spec.InitContainers = []v1.Container{{Name: "setup", VolumeMounts: []v1.VolumeMount{{Name: "env", MountPath: "/env"}}}}
			},
		},
		{
			name:    "a variable from a file in a volume that is not there",
			preset:  func(p *Preset) { p.Env = []v1.EnvVar{fileVar("COLOR", "env")} },
			message: "Conflict on pod preset. Volume env, which env COLOR reads a file of, is not an emptyDir of the pod.",
		},
		{
			name:    "a variable from a file in a volume of another kind",
			preset:  func(p *Preset) { p.Env = []v1.EnvVar{fileVar("COLOR", "env")} },
			pod:     func(pod *v1.Pod) { pod.Spec.Volumes = []v1.Volume{hostPath("env", "/srv")} },
			message: "Conflict on pod preset. Volume env, which env COLOR reads a file of, is not an emptyDir of the pod.",
		},
		{
			name:   "a variable from a file in a volume that a container mounts",
			preset: func(p *Preset) { p.Env = []v1.EnvVar{fileVar("COLOR", "env")} },
			pod: func(pod *v1.Pod) {
				pod.Spec.Volumes = []v1.Volume{emptyDir("env")}
				pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "env", MountPath: "/env"}}
			},
			message: "Conflict on pod preset. Volume env holds env files, so that container website may not mount it.",
		},
		{
			name:   "variables from files in two volumes, of which a container mounts the first",
			preset: func(p *Preset) { p.Env = []v1.EnvVar{fileVar("COLOR", "a"), fileVar("SIZE", "b")} },
			pod: func(pod *v1.Pod) {
				pod.Spec.Volumes = []v1.Volume{emptyDir("a"), emptyDir("b")}
				pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "a", MountPath: "/a"}}
			},
			message: "Conflict on pod preset. Volume a holds env files, so that container website may not mount it.",
		},
		{
			name:   "a variable from a file that one container reads, and so may not mount",
			preset: func(p *Preset) { p.Env = []v1.EnvVar{fileVar("COLOR", "env")} },
			pod: func(pod *v1.Pod) {
				pod.Spec.Volumes = []v1.Volume{emptyDir("env")}
				pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "reader",
					Env: []v1.EnvVar{fileVar("COLOR", "env")}, VolumeMounts: []v1.VolumeMount{{Name: "env", MountPath: "/env"}}})
			},
			message: "Conflict on pod preset. Volume env holds env files, so that container reader may not mount it.",
		},
		{
			name: "a mount of a volume of env files that others read",
			preset: func(p *Preset) {
				p.Volumes = []v1.Volume{emptyDir("env")}
				p.VolumeMounts = []v1.VolumeMount{{Name: "env", MountPath: "/env"}}
			},
			pod: func(pod *v1.Pod) {
				pod.Spec.Volumes = []v1.Volume{emptyDir("env")}
				pod.Spec.InitContainers = []v1.Container{{Name: "writer"}, {Name: "reader", Env: []v1.EnvVar{fileVar("COLOR", "env")}}}
			},
			message: "Conflict on pod preset. Volume env holds env files, so that container reader may not mount it." +
				" Volume env holds env files, so that container website may not mount it.",
		},
		{
			name: "a mount of a volume, and a variable from a file in it",
			preset: func(p *Preset) {
				p.Volumes = []v1.Volume{emptyDir("env")}
				p.VolumeMounts = []v1.VolumeMount{{Name: "env", MountPath: "/env"}}
				p.Env = []v1.EnvVar{fileVar("COLOR", "env")}
			},
			pod: func(pod *v1.Pod) { pod.Spec.InitContainers = []v1.Container{{Name: "init"}} },
			message: "Conflict on pod preset. Volume env holds env files, so that container init may not mount it." +
				" Volume env holds env files, so that container website may not mount it.",
		},
		{
			name: "a mount of a volume of env files",
			preset: func(p *Preset) {
				p.Volumes = []v1.Volume{emptyDir("env")}
				p.VolumeMounts = []v1.VolumeMount{{Name: "env", MountPath: "/env"}}
			},
			pod: func(pod *v1.Pod) {
				pod.Spec.Volumes = []v1.Volume{emptyDir("env")}
				pod.Spec.Containers[0].Env = []v1.EnvVar{fileVar("COLOR", "env")}
			},
			message: "Conflict on pod preset. Volume env holds env files, so that container website may not mount it.",
		},
		{
			name:   "the claim of an ephemeral volume",
			preset: bringEphemeral,
			pod: func(pod *v1.Pod) {
				pod.Spec.Volumes = []v1.Volume{{Name: "own", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "website-scratch"}}}}
			},
			message: "Conflict on pod preset. Volumes scratch and own have the same claim.",
		},
		{
			name: "the claim of an ephemeral volume of the pod",
			preset: func(p *Preset) {
				p.Volumes = []v1.Volume{block}
				p.Volumes[0].PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: "website-scratch"}
				p.VolumeMounts = []v1.VolumeMount{{Name: "disk", MountPath: "/disk"}}
			},
			pod:     func(pod *v1.Pod) { pod.Spec.Volumes = []v1.Volume{ephemeral} },
			message: "Conflict on pod preset. Volumes disk and scratch have the same claim.",
		},
		{
			name:   "a claim with the name that an ephemeral volume's would have",
			preset: func(p *Preset) { *p = *database() },
			pod: func(pod *v1.Pod) {
				pod.Spec.Volumes = []v1.Volume{{Name: "own", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "website-cache-volume"}}}}
			},
		},
		{
			name:   "a name as long as a claim's can be",
			preset: bringEphemeral,
			pod:    func(pod *v1.Pod) { pod.Name = strings.Repeat("a", 253-len("-scratch")) },
		},
		{
			name:    "a name too long for a claim",
			preset:  bringEphemeral,
			pod:     func(pod *v1.Pod) { pod.Name = strings.Repeat("a", 254-len("-scratch")) },
			message: "Conflict on pod preset. The names of the pod and of volume scratch are too long for a claim.",
		},
		{
			name:    "no token, and no service account",
			preset:  func(p *Preset) { *p = *database() },
			options: Options{NoServiceAccount: true},
		},
		{
			name: "a projected volume without a token, and no service account",
			preset: func(p *Preset) {
				p.Volumes = []v1.Volume{projected}
				p.VolumeMounts = []v1.VolumeMount{{Name: "info", MountPath: "/info"}}
			},
			options: Options{NoServiceAccount: true},
		},
		{
			name:    "a token of the service account that the pod does not have",
			preset:  bringToken,
			options: Options{NoServiceAccount: true},
			message: "Conflict on pod preset. Volume token has a token of a service account, and the pod names none.",
		},
		{
			name:    "a token of the service account that the pod names",
			preset:  bringToken,
			pod:     func(pod *v1.Pod) { pod.Spec.ServiceAccountName = "default" },
			options: Options{NoServiceAccount: true},
		},
		{
			name:   "a token of the service account that the pod will have",
			preset: bringToken,
		},
		{
			name:   "annotations with just enough room",
			preset: func(p *Preset) { *p = *database() },
			pod:    func(pod *v1.Pod) { pod.Annotations = map[string]string{"a": strings.Repeat("x", room)} },
		},
		{
			name:    "annotations without room",
			preset:  func(p *Preset) { *p = *database() },
			pod:     func(pod *v1.Pod) { pod.Annotations = map[string]string{"a": strings.Repeat("x", room+1)} },
			message: "Conflict on pod preset. The pod has no room for another annotation.",
		},
		{
			name:   "annotations without room, of which the preset's is one",
			preset: func(p *Preset) { *p = *database() },
			pod: func(pod *v1.Pod) {
				pod.Annotations = map[string]string{"a": strings.Repeat("x", room), AppliedAnnotation("allow-database"): "6"}
			},
		},
		{
			name: "a preset of half a megabyte in three containers",
			preset: func(p *Preset) {
				p.Env = []v1.EnvVar{{Name: "A", Value: strings.Repeat("x", 512*1024)}}
				p.Volumes = []v1.Volume{hostPath("data", "/srv")}
			},
			pod: func(pod *v1.Pod) {
				pod.Spec.InitContainers = []v1.Container{{Name: "a"}, {Name: "b"}}
				pod.Spec.Volumes = []v1.Volume{emptyDir("data")} // is not said: it is not gone through
			},
			message: "Conflict on pod preset. The pod would be too large.",
		},
		{
			name:    "a preset that a large pod has no room for",
			preset:  func(p *Preset) { p.Env = []v1.EnvVar{{Name: "A", Value: strings.Repeat("x", 100*1024)}} },
			pod:     func(pod *v1.Pod) { pod.Spec.Containers[0].Args = []string{strings.Repeat("x", 1000*1024)} },
			message: "Conflict on pod preset. The pod would be too large.",
		},
		{
			name:   "a small preset, and a pod that is too large already",
			preset: func(p *Preset) { *p = *database() },
			pod:    func(pod *v1.Pod) { pod.Spec.Containers[0].Args = []string{strings.Repeat("x", 1100*1024)} },
		},
		{
			name:   "a preset of half a megabyte, which one of two containers has",
			preset: func(p *Preset) { p.Env = []v1.EnvVar{{Name: "A", Value: strings.Repeat("x", 500*1024)}} },
			pod: func(pod *v1.Pod) {
				pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "b", Env: []v1.EnvVar{{Name: "A", Value: strings.Repeat("x", 500*1024)}}})
			},
		},
		{
			name:    "a broken preset",
			preset:  func(p *Preset) { p.Broken = "Reason" },
			message: "Conflict on pod preset. Reason.",
		},
		{
			name:    "names that are not fit to be printed",
			preset:  func(p *Preset) { p.Env = []v1.EnvVar{{Name: "a b", Value: "1"}} },
			pod:     func(pod *v1.Pod) { pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "a b", Value: "secret"}} },
			message: `Conflict on pod preset. Duplicate env "a b".`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := preset("p", tt.preset)
			pod := website(tt.pod)
			before := pod.DeepCopy()
			result := into(pod, []*Preset{p}, tt.options)
			if tt.message == "" {
				if len(result.Conflicts) > 0 {
					t.Fatalf("conflict: %s", result.Conflicts[0].Message())
				}
				again := pod.DeepCopy()
				if result := into(again, []*Preset{p}, tt.options); len(result.Conflicts) > 0 || !reflect.DeepEqual(again, pod) {
					t.Errorf("a second injection changes the pod (%v)\n%v\nwant\n%v", result.Conflicts, again, pod)
				}
				return
			}
			if len(result.Conflicts) != 1 {
				t.Fatalf("no conflict, the pod is\n%v", pod)
			}
			if got := result.Conflicts[0].Message(); got != tt.message {
				t.Errorf("the message is %q, want %q", got, tt.message)
			}
			if !reflect.DeepEqual(pod, before) {
				t.Errorf("something was injected:\n%v\nwant\n%v", pod, before)
			}
		})
	}
}

// TestOptionalThatIsUnsetIsFalse has each source that can be optional in the pod and in the preset.
func TestOptionalThatIsUnsetIsFalse(t *testing.T) {
	name := v1.LocalObjectReference{Name: "n"}
	sources := map[string]func(p *Preset, optional *bool){
		"a key of a ConfigMap": func(p *Preset, optional *bool) {
			p.Env = []v1.EnvVar{{Name: "A", ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{Key: "k", Optional: optional}}}}
		},
		"a key of a Secret": func(p *Preset, optional *bool) {
			p.Env = []v1.EnvVar{{Name: "A", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{Key: "k", Optional: optional}}}}
		},
		"a key of a file": func(p *Preset, optional *bool) {
			p.Env = []v1.EnvVar{fileVar("A", "files")}
			p.Env[0].ValueFrom.FileKeyRef.Optional = optional
		},
		"a ConfigMap": func(p *Preset, optional *bool) {
			p.EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: name, Optional: optional}}}
		},
		"a Secret": func(p *Preset, optional *bool) {
			p.EnvFrom = []v1.EnvFromSource{{SecretRef: &v1.SecretEnvSource{LocalObjectReference: name, Optional: optional}}}
		},
		"a volume": func(p *Preset, optional *bool) {
			p.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: name, Optional: optional}}}}
			p.VolumeMounts = []v1.VolumeMount{{Name: "v", MountPath: "/v"}}
		},
	}
	yes, no := true, false
	text := func(b *bool) string {
		if b == nil {
			return "unset"
		}
		return fmt.Sprint(*b)
	}
	for name, source := range sources {
		for _, had := range []*bool{nil, &no, &yes} {
			for _, want := range []*bool{nil, &no, &yes} {
				t.Run(fmt.Sprintf("%s, %s in the pod, %s in the preset", name, text(had), text(want)), func(t *testing.T) {
					of := preset("pod", func(p *Preset) { source(p, had) })
					pod := website(func(pod *v1.Pod) {
						pod.Spec.Volumes = append(of.Volumes, emptyDir("files"))
						pod.Spec.Containers[0].Env, pod.Spec.Containers[0].EnvFrom = of.Env, of.EnvFrom
						pod.Spec.Containers[0].VolumeMounts = of.VolumeMounts
					})
					result := into(pod, []*Preset{preset("p", func(p *Preset) { source(p, want) })}, Options{})
					if conflict := (had == &yes) != (want == &yes); conflict != (len(result.Conflicts) > 0) {
						t.Errorf("conflicts %v, want one: %v", result.Conflicts, conflict)
					}
				})
			}
		}
	}
}

func TestPathsThatAreOne(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		one  bool
	}{
		{"/a:b", "/a:b/", true},
		{`/a\b`, `//a\b`, true},
		{"/C:/a", "/C:/a/", true},
		{"ab:c", "ab:c/.", true},
		{"1:", "1:/", true},
		{"a", "/a/", true},
		{":", "/:", true},
		{"`:", "`:/", true},
		{"{:", "{:/", true},
		{"@:", "@:/", true},
		{"[:", "[:/", true},
		// Those of Windows.
		{`C:\a`, `C:\a\`, false},
		{"c:/a", "c:/a/", false},
		{"a:", "a:/", false},
		{"z:", "z:/", false},
		{"A:", "A:/", false},
		{"Z:", "Z:/", false},
		{`\a`, `/\a`, false},
		{`\a/`, `\a`, false},
	} {
		if again := PathsAgain([]string{tt.a, tt.b}); (len(again) == 1) != tt.one {
			t.Errorf("%s and %s: again at %v, want one path: %v", tt.a, tt.b, again, tt.one)
		}
	}
}

func TestConflictLeavesOtherPresetsAlone(t *testing.T) {
	older := preset("older", func(p *Preset) { p.Env = []v1.EnvVar{{Name: "A", Value: "1"}} })
	younger := preset("younger", func(p *Preset) {
		p.Env = []v1.EnvVar{{Name: "A", Value: "2"}, {Name: "B", Value: "2"}}
		p.Created = metav1.NewTime(start.Add(time.Second))
	})
	same := preset("same", func(p *Preset) { p.Env = []v1.EnvVar{{Name: "A", Value: "1"}, {Name: "C", Value: "3"}} })
	pod := website(nil)
	result := into(pod, []*Preset{older, younger, same}, Options{})
	if len(result.Conflicts) != 1 || result.Conflicts[0].Preset != younger {
		t.Fatalf("conflicts: %v, want one of the preset younger", result.Conflicts)
	}
	want := []v1.EnvVar{{Name: "A", Value: "1"}, {Name: "C", Value: "3"}}
	if got := pod.Spec.Containers[0].Env; !reflect.DeepEqual(got, want) {
		t.Errorf("variables: %v, want %v", got, want)
	}
}

func TestConflictStaysInASecondPass(t *testing.T) {
	env := []v1.EnvVar{{Name: "COLOR", Value: "red"}}
	options := Options{Keys: func(*v1.EnvFromSource) []string { return []string{"COLOR"} }}
	older := preset("older", func(p *Preset) { p.Env = env })
	// It has what the older one lacks; if it were applied, nothing would be left to conflict with.
	younger := preset("younger", func(p *Preset) { p.Env, p.EnvFrom = env, []v1.EnvFromSource{configMap("settings")} })
	pod := website(func(pod *v1.Pod) { pod.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{configMap("settings")} })
	for pass := 1; pass <= 2; pass++ {
		if result := into(pod, []*Preset{older, younger}, options); len(result.Conflicts) != 2 {
			t.Errorf("pass %d: %d presets are applied, %d are in conflict; want 0 and 2", pass, len(result.Applied), len(result.Conflicts))
		}
	}
}

func TestSecondPassInjectsIntoNewContainersOnly(t *testing.T) {
	p := database()
	pod := website(func(pod *v1.Pod) { pod.Spec.InitContainers = []v1.Container{{Name: "init"}} })
	first := into(pod, []*Preset{p}, Options{})
	// A webhook overwrites what was injected, takes the label away, and adds a container.
	pod.Spec.Containers[0].Env[0].Value = "1"
	pod.Spec.InitContainers[0].Env = nil
	pod.Labels = nil
	pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "proxy"})
	second := into(pod, []*Preset{p}, Options{Before: first.Record})
	if len(second.Conflicts) > 0 {
		t.Fatalf("in conflict with itself: %s", second.Conflicts[0].Message())
	}
	if got := pod.Spec.Containers[0].Env; len(got) != 1 || got[0].Value != "1" {
		t.Errorf("the first container has %v, want what the webhook made of it", got)
	}
	if got := pod.Spec.InitContainers[0].Env; len(got) > 0 {
		t.Errorf("the init container has %v, want what the webhook made of it", got)
	}
	if got := pod.Spec.Containers[1].Env; len(got) != 1 || got[0].Value != "6379" {
		t.Errorf("the new container has %v, want the preset's variable", got)
	}
	third := into(pod, []*Preset{p}, Options{Before: second.Record})
	if len(third.Conflicts) > 0 || len(pod.Spec.Containers[1].Env) != 1 {
		t.Errorf("a third pass injects again: %v", pod.Spec.Containers[1].Env)
	}
}

// TestNewContainerInConflict has a webhook that adds two containers.
func TestNewContainerInConflict(t *testing.T) {
	p := database()
	pod := website(nil)
	record := into(pod, []*Preset{p}, Options{}).Record
	proxy := v1.Container{Name: "proxy", Env: []v1.EnvVar{{Name: "DB_PORT", Value: "1"}}}
	// The one in conflict is the last, so that it has the last word on the annotation.
	pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "logs"}, proxy)
	other := *proxy.DeepCopy()
	other.Name = "other"
	pod.Spec.Containers = append(pod.Spec.Containers, other)
	second := into(pod, []*Preset{p}, Options{Before: record})
	if len(second.Conflicts) != 1 || second.Conflicts[0].Message() != "Conflict on pod preset. Container proxy gets nothing of it. Duplicate env DB_PORT. Container other gets nothing of it." {
		t.Errorf("conflicts: %v, want one about DB_PORT of both containers", second.Conflicts)
	}
	if !reflect.DeepEqual(pod.Spec.Containers[2], proxy) {
		t.Errorf("the proxy is %v, want nothing of the preset", pod.Spec.Containers[2])
	}
	for _, got := range pod.Spec.Containers[:2] {
		if len(got.Env) != 1 || len(got.VolumeMounts) != 1 {
			t.Errorf("container %s lacks the preset: %v", got.Name, got)
		}
	}
	if pod.Annotations[AppliedAnnotation("allow-database")] == "" {
		t.Error("the pod does not say that the preset was applied")
	}
	if third := into(pod, []*Preset{p}, Options{Before: second.Record}); len(third.Conflicts) > 0 {
		t.Errorf("a third pass says it again: %v", third.Conflicts)
	}
}

// TestContainersThatComeTogether has a webhook that takes the preset's volume away, and adds
// three containers: what one of them gets counts for the next.
func TestContainersThatComeTogether(t *testing.T) {
	p := preset("quarter", func(p *Preset) {
		p.Volumes = []v1.Volume{emptyDir("cache")}
		p.Env = []v1.EnvVar{{Name: "A", Value: strings.Repeat("x", maxPod/4)}}
	})
	pod := website(nil)
	record := into(pod, []*Preset{p}, Options{}).Record
	pod.Spec.Volumes = nil
	pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "second"}, v1.Container{Name: "third"}, v1.Container{Name: "fourth"})
	result := into(pod, []*Preset{p}, Options{Before: record})
	if len(result.Conflicts) != 1 || result.Conflicts[0].Message() != "Conflict on pod preset. Container fourth gets nothing of it. The pod would be too large." {
		t.Errorf("conflicts: %v, want one of the fourth container's size", result.Conflicts)
	}
	for i, want := range []int{1, 1, 1, 0} {
		if c := pod.Spec.Containers[i]; len(c.Env) != want {
			t.Errorf("container %s has %d variables, want %d", c.Name, len(c.Env), want)
		}
	}
	if len(pod.Spec.Volumes) != 1 {
		t.Errorf("the pod has %d volumes, want the preset's, once", len(pod.Spec.Volumes))
	}
}

// TestLeftOutStaysOut has an older preset that a younger one leaves nothing to add.
func TestLeftOutStaysOut(t *testing.T) {
	options := Options{Keys: func(*v1.EnvFromSource) []string { return []string{"COLOR"} }}
	env, sources := []v1.EnvVar{{Name: "COLOR", Value: "red"}}, []v1.EnvFromSource{configMap("settings")}
	older := preset("older", func(p *Preset) { p.EnvFrom = sources })
	younger := preset("younger", func(p *Preset) { p.Env, p.EnvFrom = env, sources })
	pod := website(func(pod *v1.Pod) { pod.Spec.Containers[0].Env = env })
	first := into(pod, []*Preset{older, younger}, options)
	if len(first.Applied) != 1 || first.Applied[0] != younger {
		t.Fatalf("applied: %v, want the younger alone, whose own env COLOR is", first.Applied)
	}
	options.Before = first.Record
	if second := into(pod, []*Preset{older, younger}, options); len(second.Applied) != 1 || pod.Annotations[AppliedAnnotation("older")] != "" {
		t.Errorf("a second pass applies %v, want what the first decided", second.Applied)
	}
}

func TestIntoEndsWithTheRequest(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	gone := errors.New("the client is gone")
	cancel(gone)
	if _, err := Into(ctx, website(nil), []*Preset{database()}, Options{}); !errors.Is(err, gone) {
		t.Errorf("error %v, want %v", err, gone)
	}
}

// TestIntoEndsInTheMiddleOfAPreset has a request that ends while the only preset is compared.
func TestIntoEndsInTheMiddleOfAPreset(t *testing.T) {
	for _, name := range []string{
		"init containers that mount the volume of the env files",
		"containers with sources that no key of the preset's fits",
		"containers that a webhook adds",
	} {
		l := loads[name](200 << 10)
		for _, looks := range []int{1, 30} {
			ctx := &ending{Context: context.Background(), left: looks}
			_, err := Into(ctx, l.pod.DeepCopy(), []*Preset{l.preset}, l.options)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: error %v, want that of the context", name, err)
			}
			if ctx.left < -10 {
				t.Errorf("%s: %d looks at a request that has ended", name, -ctx.left)
			}
		}
	}
}

// ending is a context that ends when Err was called as often as is left.
type ending struct {
	context.Context
	left int
}

func (c *ending) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestConflictTakesForeignAnnotationAway(t *testing.T) {
	pod := website(func(pod *v1.Pod) {
		pod.Annotations = map[string]string{AppliedAnnotation("allow-database"): "1"}
		pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "DB_PORT", Value: "1"}}
	})
	into(pod, []*Preset{database()}, Options{})
	if _, ok := pod.Annotations[AppliedAnnotation("allow-database")]; ok {
		t.Error("the pod says that the preset was applied, and it was not")
	}
}

func TestNothingIsShared(t *testing.T) {
	p := preset("p", func(p *Preset) {
		p.Env = []v1.EnvVar{{Name: "A", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}
		p.Volumes = []v1.Volume{emptyDir("v")}
		p.VolumeMounts = []v1.VolumeMount{{Name: "v", MountPath: "/v"}}
	})
	pod := website(func(pod *v1.Pod) { pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "b"}) })
	into(pod, []*Preset{p}, Options{})
	a, b := &pod.Spec.Containers[0].Env[0], &pod.Spec.Containers[1].Env[0]
	if a.ValueFrom == b.ValueFrom || a.ValueFrom == p.Env[0].ValueFrom || pod.Spec.Volumes[0].EmptyDir == p.Volumes[0].EmptyDir {
		t.Error("containers, pod and preset share memory")
	}
}

func TestReasonsAreBounded(t *testing.T) {
	for names, end := range map[int]string{10: "....", 11: "And 1 more.", 30: "And 20 more."} {
		pod := website(nil)
		p := preset("p", func(*Preset) {})
		for i := 0; i < names; i++ {
			name := strings.Repeat(string(rune('A'+i)), 400)
			pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, v1.EnvVar{Name: name, Value: "1"})
			p.Env = append(p.Env, v1.EnvVar{Name: name, Value: "2"})
		}
		message := into(pod, []*Preset{p}, Options{}).Conflicts[0].Message()
		if len(message) > 3072 || !strings.HasSuffix(message, end) {
			t.Errorf("%d names: a message of %d bytes that ends in %q", names, len(message), message[len(message)-20:])
		}
	}
}

func TestNamesAreShownFitToBePrinted(t *testing.T) {
	longest := strings.Repeat("a", 256)
	for name, want := range map[string]string{
		"": `""`, "a b": `"a b"`, "a\x00": `"a\x00"`, "Größe": "Größe", longest: longest, longest + "a": longest + "...",
	} {
		if got := show(name); got != want {
			t.Errorf("%q is shown as %s, want %s", name, got, want)
		}
	}
}

func TestSizesOfAllKindsCount(t *testing.T) {
	half := strings.Repeat("x", maxPod/2)
	env := func(p *Preset) { p.Env = []v1.EnvVar{{Name: "A", Value: half}} }
	for name, more := range map[string]func(*Preset){
		"env":     func(p *Preset) { p.Env = append(p.Env, v1.EnvVar{Name: "B", Value: half}) },
		"envFrom": func(p *Preset) { p.EnvFrom = []v1.EnvFromSource{configMap(half)} },
		"mounts":  func(p *Preset) { p.VolumeMounts = []v1.VolumeMount{{Name: half, MountPath: "/a"}} },
		"volumes": func(p *Preset) { p.Volumes = []v1.Volume{hostPath("a", half)} },
	} {
		result := into(website(nil), []*Preset{preset("half", env)}, Options{})
		if len(result.Conflicts) > 0 {
			t.Fatal(result.Conflicts[0].Message())
		}
		result = into(website(nil), []*Preset{preset("whole", func(p *Preset) { env(p); more(p) })}, Options{})
		if len(result.Conflicts) != 1 || result.Conflicts[0].Message() != "Conflict on pod preset. The pod would be too large." {
			t.Errorf("half of it by env, half by %s: conflicts %v", name, len(result.Conflicts))
		}
	}
}

// TestLargePresetsTakeNoMinutes has presets that are as large as the API server stores them:
// whoever may write one must not keep it from creating pods.
func TestLargePresetsTakeNoMinutes(t *testing.T) {
	const many = 10_000
	keys := make([]string, 100_000)
	for i := range keys {
		keys[i] = fmt.Sprint("KEY_", i)
	}
	calls := 0
	options := Options{Keys: func(*v1.EnvFromSource) []string { calls++; return keys }}
	again := v1.EnvVar{Name: "AGAIN"}
	pod := website(func(pod *v1.Pod) {
		for i := 0; i < many; i++ {
			pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, v1.EnvVar{Name: fmt.Sprint("P", i, "_OTHER")}, again)
		}
	})
	sources := preset("sources", func(p *Preset) {
		for i := 0; i < many; i++ {
			source := configMap(fmt.Sprint("settings-", i%2))
			source.Prefix = fmt.Sprint("P", i, "_")
			p.EnvFrom = append(p.EnvFrom, source)
			p.Env = append(p.Env, again)
		}
	})
	claims := preset("claims", func(p *Preset) {
		for i := 0; i < many; i++ {
			p.Volumes = append(p.Volumes, v1.Volume{Name: fmt.Sprint("v", i), VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}})
		}
	})
	started := time.Now()
	result := into(pod, []*Preset{sources, claims}, options)
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	if len(result.Applied) != 2 || calls != 2 {
		t.Errorf("%d of 2 presets are applied, conflicts: %v; two ConfigMaps were read %d times", len(result.Applied), result.Conflicts, calls)
	}
}

// TestManySourcesAreBounded has as many variables as sources, on both sides.
func TestManySourcesAreBounded(t *testing.T) {
	const many = 10_000
	var env []v1.EnvVar
	var had, added []v1.EnvFromSource
	for i := 0; i < many; i++ {
		env = append(env, v1.EnvVar{Name: fmt.Sprint("N", i)})
		had = append(had, configMap(fmt.Sprint("had-", i)))
		source := configMap("settings")
		source.Prefix = fmt.Sprint("P", i, "_")
		added = append(added, source)
	}
	keys := make([]string, 100_000)
	for i := range keys {
		keys[i] = fmt.Sprint("KEY_", i)
	}
	for _, tt := range []struct {
		name    string
		keys    func(*v1.EnvFromSource) []string
		preset  func(*Preset)
		message string
	}{
		{"sources that nobody knows", func(*v1.EnvFromSource) []string { return nil },
			func(p *Preset) { p.Env, p.EnvFrom = env, added }, ""},
		{"variables beside sources", func(*v1.EnvFromSource) []string { return []string{"OTHER"} },
			func(p *Preset) { p.Env = env }, "Conflict on pod preset. There is too much to compare."},
		{"sources beside sources", func(s *v1.EnvFromSource) []string {
			if s.ConfigMapRef.Name == "settings" {
				return keys
			}
			return []string{"OTHER"}
		}, func(p *Preset) { p.EnvFrom = added }, "Conflict on pod preset. There is too much to compare."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := website(func(pod *v1.Pod) { pod.Spec.Containers[0].EnvFrom = had })
			var message string
			result := into(pod, []*Preset{preset("p", tt.preset)}, Options{Keys: tt.keys})
			if len(result.Conflicts) > 0 {
				message = result.Conflicts[0].Message()
			}
			if message != tt.message {
				t.Errorf("conflict %q, want %q", message, tt.message)
			}
		})
	}
}

// TestPresetsShareTheSteps, so that many small ones do not cost as much as they please.
func TestPresetsShareTheSteps(t *testing.T) {
	own := configMap("own")
	own.Prefix = "LONGER_THAN_A_KEY_"
	pod := website(func(pod *v1.Pod) {
		pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/"}}}}
		pod.Spec.Containers = nil
		for i := 0; i < 100; i++ {
			pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: fmt.Sprint("c", i), EnvFrom: []v1.EnvFromSource{own}})
		}
	})
	keys := make([]string, maxSteps*6/10/100)
	for i := range keys {
		keys[i] = fmt.Sprint("KEY_", i)
	}
	var presets []*Preset
	for _, name := range []string{"a", "b", "c"} {
		source := configMap("of-" + name)
		source.Prefix = name
		presets = append(presets, preset(name, func(p *Preset) {
			p.EnvFrom = []v1.EnvFromSource{source}
			p.Volumes = []v1.Volume{emptyDir("data")}
		}))
	}
	result := into(pod, presets, Options{Keys: func(s *v1.EnvFromSource) []string {
		if s.ConfigMapRef.Name == "own" {
			return []string{"OTHER"}
		}
		return keys
	}})
	var messages []string
	for _, c := range result.Conflicts {
		messages = append(messages, c.Message())
	}
	// The second begins with what the first left, and the third with nothing.
	const tooMuch = "Conflict on pod preset. There is too much to compare."
	if want := []string{"Conflict on pod preset. Duplicate volume data.", tooMuch, tooMuch}; !reflect.DeepEqual(messages, want) {
		t.Errorf("conflicts %q, want %q", messages, want)
	}
}

// load is a large injection.
type load struct {
	pod     *v1.Pod
	preset  *Preset
	options Options
	keys    int // bytes of the keys of a ConfigMap
}

// bytes is the size of what the cost has to be linear in.
func (l *load) bytes() int {
	return l.pod.Size() + sizeOf(l.preset.Env) + sizeOf(l.preset.VolumeMounts) + l.keys
}

// inject fails the test if another thing than its size keeps the preset out.
func (l *load) inject(tb testing.TB) (took time.Duration) {
	tb.Helper()
	pod := l.pod.DeepCopy()
	started := time.Now()
	result := into(pod, []*Preset{l.preset}, l.options)
	took = time.Since(started)
	for _, c := range result.Conflicts {
		if m := c.Message(); !strings.HasSuffix(m, "The pod would be too large.") && !strings.HasSuffix(m, "There is too much to compare.") {
			tb.Fatal(m)
		}
	}
	return took
}

// loads are injections of about that many bytes, half of them the preset's or its ConfigMap's.
var loads = map[string]func(bytes int) *load{
	"one container": halves,
	"containers that have nothing": func(bytes int) *load {
		l := halves(bytes)
		l.pod.Spec.Containers = nil
		for i := 0; i < 3+bytes/9000; i++ {
			l.pod.Spec.Containers = append(l.pod.Spec.Containers, v1.Container{Name: fmt.Sprint("c", i)})
		}
		return l
	},
	"init containers that mount the volume of the env files": func(bytes int) *load {
		const size = 40
		l := &load{pod: website(nil), preset: preset("p", func(*Preset) {})}
		l.pod.Spec.Volumes = []v1.Volume{emptyDir("files")}
		for i := 0; i < bytes/2/size; i++ {
			l.preset.Env = append(l.preset.Env, fileVar(fmt.Sprint("N", i), "files"))
			l.pod.Spec.InitContainers = append(l.pod.Spec.InitContainers, v1.Container{
				Name: fmt.Sprint("i", i), VolumeMounts: []v1.VolumeMount{{Name: "files", MountPath: "/f"}}})
		}
		return l
	},
	"containers with sources that no key of the preset's fits": func(bytes int) *load {
		const size = 40
		l := &load{pod: website(nil), preset: preset("p", func(p *Preset) { p.EnvFrom = []v1.EnvFromSource{configMap("settings")} })}
		own := configMap("own")
		own.Prefix = "LONGER_THAN_A_KEY_"
		var keys []string
		for i := 0; l.keys < bytes/2; i++ {
			keys = append(keys, fmt.Sprint("KEY_", i))
			l.keys += len(keys[i])
		}
		for i := 0; i < bytes/2/size; i++ {
			l.pod.Spec.Containers = append(l.pod.Spec.Containers, v1.Container{Name: fmt.Sprint("c", i), EnvFrom: []v1.EnvFromSource{own}})
		}
		l.options.Keys = func(*v1.EnvFromSource) []string { return keys }
		return l
	},
	"containers that a webhook adds": func(bytes int) *load {
		const size = 16
		l := &load{pod: website(nil), preset: preset("p", func(p *Preset) { p.Env = []v1.EnvVar{{Name: "A"}} })}
		l.options.Before = Record{l.preset.UID: {"website": true}}
		first := &l.pod.Spec.Containers[0]
		for i := 0; i < bytes/2/size; i++ {
			first.Env = append(first.Env, v1.EnvVar{Name: fmt.Sprint("N", i)})
			l.pod.Spec.InitContainers = append(l.pod.Spec.InitContainers, v1.Container{Name: fmt.Sprint("i", i)})
		}
		return l
	},
}

// halves are a pod and a preset, each with as many mounts and variables of env files as make the
// two that many bytes large.
func halves(bytes int) *load {
	const sizeOfBoth = 60
	many := 1 + bytes/2/sizeOfBoth
	fill := func(start int) (env []v1.EnvVar, mounts []v1.VolumeMount) {
		for i := start; i < start+many; i++ {
			env = append(env, fileVar(fmt.Sprint("N", i), fmt.Sprint("f", i%64)))
			mounts = append(mounts, v1.VolumeMount{Name: fmt.Sprint("v", i%64), MountPath: fmt.Sprint("/", i)})
		}
		return env, mounts
	}
	pod := website(nil)
	c := &pod.Spec.Containers[0]
	c.Env, c.VolumeMounts = fill(0)
	p := preset("p", func(p *Preset) {
		p.Env, p.VolumeMounts = fill(many)
		for i := 0; i < 64; i++ {
			p.Volumes = append(p.Volumes, emptyDir(fmt.Sprint("f", i)), emptyDir(fmt.Sprint("v", i)))
		}
	})
	return &load{pod: pod, preset: p}
}

// BenchmarkInto shows that a kilobyte of pods and presets costs the same in small and in large
// ones.
func BenchmarkInto(b *testing.B) {
	for name, newLoad := range loads {
		for _, kilobytes := range []int{1, 10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/%dKB", name, kilobytes), func(b *testing.B) {
				l := newLoad(kilobytes << 10)
				b.ReportAllocs()
				for i := 0; i < b.N; i++ {
					l.inject(b)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(float64(l.bytes())/1024), "ns/KB")
			})
		}
	}
}

// TestCostIsLinear compares what a byte costs in 30 kilobytes and in 900. Quadratic work makes it
// 30 times as much. The large one may be measured several times: others use the machine too.
func TestCostIsLinear(t *testing.T) {
	for name, newLoad := range loads {
		t.Run(name, func(t *testing.T) {
			perByte := func(l *load, times int) float64 {
				best := time.Hour
				for i := 0; i < times; i++ {
					best = min(best, l.inject(t))
				}
				return float64(best) / float64(l.bytes())
			}
			small, large := newLoad(30<<10), newLoad(900<<10)
			limit := 6 * perByte(small, 5)
			cost := perByte(large, 1)
			for i := 0; i < 10 && cost > limit; i++ {
				cost = min(cost, perByte(large, 1))
			}
			if cost > limit {
				t.Errorf("a byte costs %.1f ns in a large pod, and %.1f ns in a small one", cost, limit/6)
			}
		})
	}
}

func into(pod *v1.Pod, presets []*Preset, o Options) Result {
	result, err := Into(context.Background(), pod, presets, o)
	if err != nil {
		panic(err)
	}
	return result
}
