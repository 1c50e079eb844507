package tekton

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"podenv.dev/test/images"
)

// Image is what the steps of the examples run.
const Image = images.Busybox

// Client makes objects in one namespace.
type Client struct {
	Kube      kubernetes.Interface
	Dynamic   dynamic.Interface
	Namespace string
}

// NewClient returns a client of the cluster of config.
func NewClient(config *rest.Config, namespace string) (*Client, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 100, 200
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	dyn, err := dynamic.NewForConfig(config)
	return &Client{Kube: kube, Dynamic: dyn, Namespace: namespace}, err
}

// Objects reads the objects of a manifest.
func Objects(manifest string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(manifest)), 4096); ; {
		o := &unstructured.Unstructured{}
		err := d.Decode(&o.Object)
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case len(o.Object) > 0:
			all = append(all, o)
		}
	}
}

// In returns o, written for v1beta1, as the API version has it. In v1 a PipelineRun has its pod
// template in taskRunTemplate.
func In(version string, o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	if o.GroupVersionKind().Group != "tekton.dev" {
		return o
	}
	o.SetAPIVersion("tekton.dev/" + version)
	if version != "v1" || o.GetKind() != "PipelineRun" {
		return o
	}
	spec := o.Object["spec"].(map[string]any)
	if template, ok := spec["podTemplate"]; ok {
		delete(spec, "podTemplate")
		spec["taskRunTemplate"] = map[string]any{"podTemplate": template}
	}
	specs, _ := spec["taskRunSpecs"].([]any)
	for _, s := range specs {
		task := s.(map[string]any)
		if template, ok := task["taskPodTemplate"]; ok {
			delete(task, "taskPodTemplate")
			task["podTemplate"] = template
		}
	}
	return o
}

// Resource is the client of o's kind in the namespace.
func (c *Client) Resource(o *unstructured.Unstructured) dynamic.ResourceInterface {
	gvk := o.GroupVersionKind()
	return c.Dynamic.Resource(schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: strings.ToLower(gvk.Kind) + "s"}).Namespace(c.Namespace)
}

// Create creates o.
func (c *Client) Create(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return c.Resource(o).Create(ctx, o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
}

// Condition is the condition Succeeded of a run.
type Condition struct {
	Status, Reason, Message string
}

// ConditionOf reads it; it is empty where the run has none yet.
func ConditionOf(run *unstructured.Unstructured) Condition {
	conditions, _, _ := unstructured.NestedSlice(run.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] == "Succeeded" {
			text := func(key string) string { s, _ := condition[key].(string); return s }
			return Condition{text("status"), text("reason"), text("message")}
		}
	}
	return Condition{}
}

// Await waits until done says that the run is as it should be, and returns it.
func (c *Client) Await(ctx context.Context, run *unstructured.Unstructured, limit time.Duration, done func(Condition) bool) (*unstructured.Unstructured, error) {
	last := run
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		now, err := c.Resource(run).Get(ctx, run.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		last = now
		return done(ConditionOf(now)), nil
	})
	if err != nil {
		return last, fmt.Errorf("%s %s has the condition %+v: %w", run.GetKind(), run.GetName(), ConditionOf(last), err)
	}
	return last, nil
}

// Ended reports whether the run has an end.
func Ended(c Condition) bool { return c.Status == "True" || c.Status == "False" }

// Step is what a step of a run saw.
type Step struct {
	TaskRun, Name string
	// Declared are the names of the variables of the container, in order.
	Declared []string
	// Env is what the step printed with `env`.
	Env map[string]string
	// Log is what it printed.
	Log string
}

// Steps returns the steps of all TaskRuns of a run, by TaskRun in the order of their creation.
func (c *Client) Steps(ctx context.Context, run *unstructured.Unstructured) ([]Step, error) {
	pods, err := c.Kube.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: "tekton.dev/" + strings.ToLower(run.GetKind()[:1]) + run.GetKind()[1:] + "=" + run.GetName(),
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int {
		if n := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); n != 0 {
			return n
		}
		return strings.Compare(a.Name, b.Name)
	})
	var steps []Step
	for _, pod := range pods.Items {
		if pod.Spec.NodeName == "" {
			// The API server answers with an empty log, and no error.
			return nil, fmt.Errorf("pod %s of %s %s has no node yet", pod.Name, run.GetKind(), run.GetName())
		}
		for _, container := range pod.Spec.Containers {
			name, isStep := strings.CutPrefix(container.Name, "step-")
			if !isStep {
				continue
			}
			log, err := c.Kube.CoreV1().Pods(c.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container.Name}).DoRaw(ctx)
			if err != nil {
				return nil, err
			}
			step := Step{TaskRun: pod.Labels["tekton.dev/taskRun"], Name: name, Env: map[string]string{}, Log: string(log)}
			for _, e := range container.Env {
				step.Declared = append(step.Declared, e.Name)
			}
			for line := range strings.Lines(string(log)) {
				if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok {
					step.Env[name] = value
				}
			}
			steps = append(steps, step)
		}
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("%s %s has no pods", run.GetKind(), run.GetName())
	}
	return steps, nil
}
