// Package stories runs KEP-3721's user stories as real pods, from the manifests that a
// person can kubectl apply, and shows the environment that their containers saw.
package stories

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/test/manifests"
)

// timeout is how long one story's pod has from its creation to its end.
const timeout = time.Minute

// Story is what one story's pod showed.
type Story struct {
	Manifest  string   // file name below test/manifests
	Pod       string   // name, in the namespace default
	Container string   // the one that consumes the env file
	Image     string   // of the container
	FromFile  []string // names of the variables that the container takes from env files
	Env       []string // NAME=VALUE, what the container saw
}

// Run runs the stories, all at once, and returns what their containers saw. Pods that an
// earlier run left are replaced. A container that did not see a variable from its env file
// is an error.
func Run(ctx context.Context, client kubernetes.Interface, step *progress.Step) ([]Story, error) {
	files, err := manifestsFor(client)
	if err != nil {
		return nil, err
	}
	step.Now("running %s", strings.Join(files, " and "))
	shown := make([]Story, len(files))
	group, ctx := errgroup.WithContext(ctx)
	for i, manifest := range files {
		group.Go(func() error {
			pod, err := manifests.Pod(manifest)
			if err != nil {
				return err
			}
			story, err := runPod(ctx, client.CoreV1().Pods(metav1.NamespaceDefault), pod)
			if err != nil {
				return fmt.Errorf("test/manifests/%s: %w", manifest, err)
			}
			story.Manifest = manifest
			shown[i] = *story
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return shown, nil
}

// manifestsFor returns the manifests whose env files the kubelets of the cluster can read.
func manifestsFor(client kubernetes.Interface) ([]string, error) {
	info, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("reading the version of the API server: %w", err)
	}
	quoted, err := featuregates.QuotesEnvFiles(info.GitVersion)
	if quoted {
		return manifests.QuotedStories, err
	}
	return manifests.Stories, err
}

// describe is what pod's manifest says about its story.
func describe(pod *v1.Pod) *Story {
	container := pod.Spec.Containers[0]
	story := &Story{Pod: pod.Name, Container: container.Name, Image: container.Image}
	for _, variable := range container.Env {
		if variable.ValueFrom != nil && variable.ValueFrom.FileKeyRef != nil {
			story.FromFile = append(story.FromFile, variable.Name)
		}
	}
	return story
}
