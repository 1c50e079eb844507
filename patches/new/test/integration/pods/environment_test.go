package pods

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/component-base/featuregate"
	kubeapiservertesting "k8s.io/kubernetes/cmd/kube-apiserver/app/testing"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/integration/framework"
)

// TestEnvironmentGates stores pods while a gate is on, and uses them while it is off and on again.
func TestEnvironmentGates(t *testing.T) {
	for name, test := range map[string]struct {
		gate featuregate.Feature
		env  v1.EnvVar
	}{
		"a variable from a file": {
			gate: features.EnvFiles,
			env: v1.EnvVar{Name: "VARIABLE", ValueFrom: &v1.EnvVarSource{
				FileKeyRef: &v1.FileKeySelector{VolumeName: "config", Path: "config.env", Key: "KEY"},
			}},
		},
		"a name of any printable character": {
			gate: features.RelaxedEnvironmentVariableValidation,
			env:  v1.EnvVar{Name: "1 a.b/c", Value: "value"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			storage := framework.SharedEtcd() // of all servers of this test
			whileGate := func(on bool, use func(pods podClient)) {
				// No controllers run beside it.
				flags := []string{"--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none", fmt.Sprintf("--feature-gates=%s=%t", test.gate, on)}
				server := kubeapiservertesting.StartTestServerOrDie(t, nil, flags, storage)
				defer server.TearDownFn()
				client, err := clientset.NewForConfig(server.ClientConfig)
				if err != nil {
					t.Fatal(err)
				}
				use(podClient{t, client})
			}

			whileGate(true, func(pods podClient) {
				pods.mustCreate(ctx, "stored", test.env)
			})
			whileGate(false, func(pods podClient) {
				if _, err := pods.create(ctx, "refused", test.env); !apierrors.IsInvalid(err) {
					t.Errorf("a new pod with the gate off: got %v, want it to be invalid", err)
				}
				pods.wantEnv(ctx, "stored", test.env)
				pods.mustLabel(ctx, "stored", "off")
				pods.wantEnv(ctx, "stored", test.env)
			})
			whileGate(true, func(pods podClient) {
				pods.wantEnv(ctx, "stored", test.env)
				pods.mustLabel(ctx, "stored", "on")
				pods.wantEnv(ctx, "stored", test.env)
				pods.mustCreate(ctx, "new", test.env)
			})
		})
	}
}

// podClient uses pods of the namespace default.
type podClient struct {
	t      *testing.T
	client clientset.Interface
}

// create creates a pod whose container has the variable env.
func (c podClient) create(ctx context.Context, name string, env v1.EnvVar) (*v1.Pod, error) {
	return c.client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PodSpec{
			Containers: []v1.Container{{Name: "container", Image: "image", Env: []v1.EnvVar{env}}},
			Volumes:    []v1.Volume{{Name: "config", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}},
		},
	}, metav1.CreateOptions{})
}

func (c podClient) mustCreate(ctx context.Context, name string, env v1.EnvVar) {
	c.t.Helper()
	if _, err := c.create(ctx, name, env); err != nil {
		c.t.Fatal(err)
	}
	c.wantEnv(ctx, name, env)
}

// mustLabel updates the whole pod.
func (c podClient) mustLabel(ctx context.Context, name, value string) {
	c.t.Helper()
	pod := c.get(ctx, name)
	pod.Labels = map[string]string{"gate": value}
	if _, err := c.client.CoreV1().Pods(pod.Namespace).Update(ctx, pod, metav1.UpdateOptions{}); err != nil {
		c.t.Errorf("updating a stored pod: %v", err)
	}
}

func (c podClient) wantEnv(ctx context.Context, name string, env v1.EnvVar) {
	c.t.Helper()
	want := []v1.EnvVar{*env.DeepCopy()}
	if from := want[0].ValueFrom; from != nil {
		from.FileKeyRef.Optional = new(bool) // the default
	}
	if diff := cmp.Diff(want, c.get(ctx, name).Spec.Containers[0].Env); diff != "" {
		c.t.Errorf("variables of the pod %s (-want +got):\n%s", name, diff)
	}
}

func (c podClient) get(ctx context.Context, name string) *v1.Pod {
	c.t.Helper()
	pod, err := c.client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return pod
}
