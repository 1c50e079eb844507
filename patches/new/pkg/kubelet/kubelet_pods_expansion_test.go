package kubelet

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
	"k8s.io/kubernetes/pkg/kubelet/configmap"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	secretmanager "k8s.io/kubernetes/pkg/kubelet/secret"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	"k8s.io/utils/ptr"
)

func TestUnexpandedReferencesAreOneEvent(t *testing.T) {
	const (
		prefix = "Warning UnexpandedVariableReferences Container main has references that could not be expanded: "
		suffix = ". Declare a variable before it is referred to, or write $$(NAME) to mean $(NAME) itself"
	)
	missing := v1.LocalObjectReference{Name: "missing"}
	configMap := v1.EnvVar{Name: "CONFIGMAP", ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: missing, Key: "KEY", Optional: ptr.To(true)}}}
	secret := v1.EnvVar{Name: "SECRET", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: missing, Key: "KEY", Optional: ptr.To(true)}}}
	unwritten := func(name string) v1.EnvVar {
		return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{
			VolumeName: "config", Path: "config.env", Key: "KEY", Optional: ptr.To(true),
		}}}
	}
	testCases := []struct {
		name      string
		disabled  bool
		container v1.Container
		want      string // between prefix and suffix; empty for no event
	}{
		{
			name: "everything is expanded",
			container: v1.Container{
				Env:  []v1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", Value: "$(A)"}},
				Args: []string{"$(A)$(B)"},
			},
		},
		{
			name: "env, command and args together",
			container: v1.Container{
				Env:     []v1.EnvVar{{Name: "B", Value: "$(A) $(X)"}, {Name: "A", Value: "a"}},
				Command: []string{"$(A)", "$(X)"},
				Args:    []string{"$(Y)"},
			},
			want: "$(A) (env B), $(X) (env B, command), $(Y) (args)",
		},
		{
			name: "variables of device plugins are there for command and args only",
			container: v1.Container{
				Env:     []v1.EnvVar{{Name: "B", Value: "$(DEVICE)"}},
				Command: []string{"$(DEVICE)"},
			},
			want: "$(DEVICE) (env B)",
		},
		{
			name: "escaped and malformed references",
			container: v1.Container{
				Env:  []v1.EnvVar{{Name: "B", Value: "$$(X) $(X"}},
				Args: []string{"$$(X)", "$X"},
			},
		},
		{
			name: "optional variables that are not set",
			container: v1.Container{
				Env:  []v1.EnvVar{unwritten("FILE"), configMap, secret, {Name: "B", Value: "$(FILE) $(CONFIGMAP) $(SECRET)"}},
				Args: []string{"$(FILE)", "$(CONFIGMAP)", "$(SECRET)"},
			},
			want: "$(FILE) (env B, args), $(CONFIGMAP) (env B, args), $(SECRET) (env B, args)",
		},
		{
			name: "an optional variable that is declared later",
			container: v1.Container{
				Env: []v1.EnvVar{{Name: "B", Value: "$(OPTIONAL)"}, unwritten("OPTIONAL")},
			},
			want: "$(OPTIONAL) (env B)",
		},
		{
			name:     "gate off",
			disabled: true,
			container: v1.Container{
				Env:  []v1.EnvVar{{Name: "B", Value: "$(X)"}},
				Args: []string{"$(X)"},
			},
		},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			featurestest.SetGate(t, features.EnvFiles, true)
			featurestest.SetGate(t, features.VariableExpansionEvents, !tc.disabled)
			tc.container.Name = "main"
			pod := &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Name: "pod", Namespace: "default",
					Annotations: map[string]string{kubetypes.ConfigSourceAnnotationKey: kubetypes.FileSource},
				},
				Spec: v1.PodSpec{
					EnableServiceLinks: ptr.To(false),
					Containers:         []v1.Container{tc.container},
					Volumes:            []v1.Volume{{Name: "config", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}},
				},
			}
			recorder := record.NewFakeRecorder(2)
			client := fake.NewSimpleClientset()
			kl := &Kubelet{
				recorder:         recorder,
				podWorkers:       &fakePodWorkers{},
				kubeClient:       client,
				configMapManager: configmap.NewSimpleConfigMapManager(client),
				secretManager:    secretmanager.NewSimpleSecretManager(client),
			}

			references := kl.newUnexpandedReferences(context.Background(), pod, &tc.container)
			envs, err := kl.makeEnvironmentVariables(context.Background(), pod, &tc.container, "", nil, nil, references)
			require.NoError(t, err)
			envs = append([]kubecontainer.EnvVar{{Name: "DEVICE", Value: "0"}}, envs...)
			kubecontainer.ExpandContainerCommandAndArgs(&tc.container, envs, references)
			references.Record()

			if tc.want == "" {
				assert.Empty(t, recorder.Events)
				return
			}
			require.Len(t, recorder.Events, 1)
			assert.Equal(t, prefix+tc.want+suffix, <-recorder.Events)
		})
	}
}
