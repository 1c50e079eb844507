// Package stories runs KEP-3721's user stories as real pods, from manifests that also work
// with kubectl apply, and shows the environment that their containers saw.
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

// timeout is how long one story's pod may take from its creation to its end.
const timeout = time.Minute

// Story is the result of one story.
type Story struct {
	Manifest  string   // file name below test/manifests
	Pod       string   // name, in the namespace default
	Container string   // the one that consumes the env file
	Image     string   // of the container
	FromFile  []string // names of the variables from env files
	Env       []string // the environment that the container saw, as NAME=VALUE
}

// Run runs the stories in parallel, and returns what their containers saw. It replaces pods of
// an earlier run. It returns an error if a container does not see a variable from its env
// file.
func Run(ctx context.Context, client kubernetes.Interface, step *progress.Step) ([]Story, error) {
	files, err := manifestsFor(client)
	if err != nil {
		return nil, err
	}
	step.Now("running %s", strings.Join(files, " and "))
	results := make([]Story, len(files))
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
			results[i] = *story
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return results, nil
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

// describe returns the part of a Story that is in the manifest.
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
