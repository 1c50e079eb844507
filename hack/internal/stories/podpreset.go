package stories

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"podenv.dev/hack/internal/progress"
	"podenv.dev/test/manifests"
)

var podPresets = schema.GroupVersionResource{Group: "settings.k8s.io", Version: "v1alpha1", Resource: "podpresets"}

// Injected is what a PodPreset injected into a pod.
type Injected struct {
	Preset, Pod, Container string
	Added                  []string // variables and mounts in the created pod
}

// Preset runs the first example of the document "Pod Preset": it creates the PodPreset and the
// pod that it matches, and deletes both. It returns an error if the container does not see the
// preset's variable.
func Preset(ctx context.Context, client kubernetes.Interface, dynamicClient dynamic.Interface, step *progress.Step) (*Injected, error) {
	step.Now("running %s", manifests.PresetPod)
	presets := dynamicClient.Resource(podPresets).Namespace(metav1.NamespaceDefault)
	object, err := manifests.PodPreset()
	if err != nil {
		return nil, err
	}
	pod, err := manifests.Pod(manifests.PresetPod)
	if err != nil {
		return nil, err
	}
	if _, err := presets.Create(ctx, object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("creating the PodPreset %s: %w; does the API server serve settings.k8s.io/v1alpha1?", object.GetName(), err)
	}
	// Also after Ctrl-C, when ctx has ended.
	defer func() {
		_ = presets.Delete(context.WithoutCancel(ctx), object.GetName(), metav1.DeleteOptions{})
	}()
	pods := client.CoreV1().Pods(metav1.NamespaceDefault)
	created, err := waitForInjection(ctx, pods, pod, object.GetName())
	if err != nil {
		return nil, err
	}
	injected := &Injected{Preset: object.GetName(), Pod: pod.Name, Container: pod.Spec.Containers[0].Name, Added: injectedInto(created.Spec.Containers[0])}
	story, err := runPod(ctx, pods, pod)
	if err != nil {
		return nil, err
	}
	for _, variable := range created.Spec.Containers[0].Env {
		if !slices.Contains(story.Env, variable.Name+"="+variable.Value) {
			return nil, fmt.Errorf("container %s of pod %s did not see %s of the PodPreset %s", injected.Container, pod.Name, variable.Name, injected.Preset)
		}
	}
	return injected, nil
}

// waitForInjection creates pod in dry runs until the preset is injected, because the admission
// plugin learns of presets by a watch. It returns the pod that the API server would create.
func waitForInjection(ctx context.Context, pods typedv1.PodInterface, pod *v1.Pod, preset string) (*v1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	probe := pod.DeepCopy()
	probe.Name, probe.GenerateName = "", pod.Name+"-"
	var last *v1.Pod
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		created, err := pods.Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) {
			return false, nil // A new cluster has no default service account for a moment.
		}
		last = created
		return err == nil && created.Annotations["podpreset.admission.kubernetes.io/podpreset-"+preset] != "", err
	})
	if err != nil {
		return nil, fmt.Errorf("the PodPreset %s is not injected: %w; is the admission plugin PodPreset on in the API server?", preset, err)
	}
	return last, nil
}

// injectedInto lists the variables and mounts of a container that declared none itself.
func injectedInto(c v1.Container) []string {
	var found []string
	for _, variable := range c.Env {
		found = append(found, "env "+variable.Name+"="+variable.Value)
	}
	for _, mount := range c.VolumeMounts {
		if !strings.HasPrefix(mount.MountPath, "/var/run/secrets/kubernetes.io/") {
			found = append(found, "mount "+mount.MountPath+" of volume "+mount.Name)
		}
	}
	return found
}

// PrintInjected writes what a PodPreset injected into a pod as text.
func PrintInjected(w io.Writer, i *Injected) {
	fmt.Fprintf(w, "PodPreset %s: container %s of pod %s got\n", i.Preset, i.Container, i.Pod)
	for _, line := range i.Added {
		fmt.Fprintf(w, "    %s\n", line)
	}
}
