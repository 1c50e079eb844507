package kubelet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	"k8s.io/utils/ptr"
)

// A definition that another one replaces is nothing that a process is given, whatever the other one's source.
func TestWhatAVariableHadBeforeDoesNotCount(t *testing.T) {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{kubetypes.ConfigSourceAnnotationKey: kubetypes.FileSource}},
		Spec:       v1.PodSpec{EnableServiceLinks: ptr.To(false)},
	}
	const most = 45 // so many copies of A a process can be given
	var made, last []v1.EnvVar
	for i := 0; i < most; i++ {
		made = append(made, v1.EnvVar{Name: fmt.Sprint("V", i), Value: "$(A)"})
		last = append(last, v1.EnvVar{Name: fmt.Sprint("W", i), Value: "$(A)"})
	}
	for name, of := range map[string]func(*v1.EnvVar){
		"no value":      func(e *v1.EnvVar) { e.Value = "" },
		"another value": func(e *v1.EnvVar) { e.Value = "x" },
		"another source": func(e *v1.EnvVar) {
			e.Value, e.ValueFrom = "", &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}
		},
		"its own": func(*v1.EnvVar) {},
	} {
		t.Run(name, func(t *testing.T) {
			again := slices.Clone(made)
			for i := range again {
				of(&again[i])
			}
			container := &v1.Container{Env: []v1.EnvVar{{Name: "A", Value: strings.Repeat("x", 131_000)}}}
			for _, some := range [][]v1.EnvVar{made, again, last} {
				container.Env = append(container.Env, some...)
			}
			_, err := (&Kubelet{}).makeEnvironmentVariables(context.Background(), pod, container, "", nil, nil, nil)
			if name != "its own" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, "more than a process can be given")
			}
		})
	}
}

// A few variables that refer to each other would make more than the node's memory.
func TestAVariableThatIsTooLongForAProcessIsAnError(t *testing.T) {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{kubetypes.ConfigSourceAnnotationKey: kubetypes.FileSource}},
		Spec:       v1.PodSpec{EnableServiceLinks: ptr.To(false)},
	}
	container := &v1.Container{Env: []v1.EnvVar{{Name: "A", Value: strings.Repeat("s3cr3t ", 100)}}}
	for _, names := range []string{"AB", "BC", "CD", "DE", "EF"} {
		container.Env = append(container.Env, v1.EnvVar{Name: names[1:], Value: strings.Repeat("$("+names[:1]+")", 10)})
	}

	_, err := (&Kubelet{}).makeEnvironmentVariables(context.Background(), pod, container, "", nil, nil, nil)

	assert.ErrorContains(t, err, `cannot expand variable "D": the result is longer than a process can be given`)
	assert.NotContains(t, err.Error(), "s3cr3t")

	// The last definition of a name is what the container gets.
	container.Env = append(container.Env, v1.EnvVar{Name: "D", Value: "4"}, v1.EnvVar{Name: "E", Value: "5"}, v1.EnvVar{Name: "F", Value: "$(D)$(E)"})
	env, err := (&Kubelet{}).makeEnvironmentVariables(context.Background(), pod, container, "", nil, nil, nil)
	assert.NoError(t, err)
	assert.Contains(t, env, kubecontainer.EnvVar{Name: "F", Value: "45"})
}
