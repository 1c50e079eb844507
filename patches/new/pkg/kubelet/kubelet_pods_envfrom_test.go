package kubelet

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	"k8s.io/utils/ptr"
)

// A ConfigMap and a Secret with the same keys give a container the same
// variables, and the same events but for their kind.
func TestMakeEnvironmentVariablesFromKeys(t *testing.T) {
	const skipped = "were skipped since they are considered invalid environment variable names."
	strict := []string{"C_IDENTIFIER", "_", "-", "a.b", ".hidden"}
	special := []string{"1ST", "007"}
	all := append(append([]string{}, strict...), special...)
	testCases := []struct {
		name      string
		relaxed   bool
		prefix    string
		keys      []string
		want      []string
		wantEvent string // with the kind of the source for %s; empty: none
	}{
		{
			name: "gate on: every key becomes a variable", relaxed: true,
			keys: all, want: all,
		},
		{
			name: "gate on: a special prefix makes special names", relaxed: true, prefix: "Logging: ",
			keys: []string{"LogLevel", "1ST"}, want: []string{"Logging: LogLevel", "Logging: 1ST"},
		},
		{
			name: "gate off: keys that strict validation accepts become variables, without an event",
			keys: strict, want: strict,
		},
		{
			name: "gate off: the others are left out, and one event names them in order",
			keys: all, want: strict,
			wantEvent: "Keys [007, 1ST] from the EnvFrom %s test/source " + skipped,
		},
		{
			name: "gate off: nothing is left if there is nothing but others",
			keys: special, want: nil,
			wantEvent: "Keys [007, 1ST] from the EnvFrom %s test/source " + skipped,
		},
		{
			name: "gate off: what counts is the name with the prefix", prefix: "p_",
			keys: all, want: []string{"p_C_IDENTIFIER", "p__", "p_-", "p_a.b", "p_.hidden", "p_1ST", "p_007"},
		},
		{
			name: "gate off: a special prefix, stored while the gate was on, spoils every key", prefix: "a b",
			keys: []string{"KEY", "1ST"}, want: nil,
			wantEvent: "Keys [a b1ST, a bKEY] from the EnvFrom %s test/source " + skipped,
		},
		{
			name: "gate off: a prefix that makes a step out of a directory", prefix: ".",
			keys: []string{".hidden", "KEY"}, want: []string{".KEY"},
			wantEvent: "Keys [..hidden] from the EnvFrom %s test/source " + skipped,
		},
	}
	sources := []struct {
		kind    string
		object  func(keys []string) runtime.Object
		envFrom v1.EnvFromSource
	}{
		{
			kind: "configMap",
			object: func(keys []string) runtime.Object {
				data := map[string]string{}
				for _, key := range keys {
					data[key] = "value of " + key
				}
				return &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "source"}, Data: data}
			},
			envFrom: v1.EnvFromSource{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "source"}}},
		},
		{
			kind: "secret",
			object: func(keys []string) runtime.Object {
				data := map[string][]byte{}
				for _, key := range keys {
					data[key] = []byte("value of " + key)
				}
				return &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "source"}, Data: data}
			},
			envFrom: v1.EnvFromSource{SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "source"}}},
		},
	}
	for _, source := range sources {
		for _, tc := range testCases {
			t.Run(source.kind+"/"+tc.name, func(t *testing.T) {
				featurestest.SetGate(t, features.RelaxedEnvironmentVariableValidation, tc.relaxed)
				testKubelet := newTestKubelet(t, false /* controllerAttachDetachEnabled */)
				defer testKubelet.Cleanup()
				recorder := record.NewFakeRecorder(2)
				testKubelet.kubelet.recorder = recorder
				stored := source.object(tc.keys)
				unchanged := stored.DeepCopyObject()
				testKubelet.fakeKubeClient.AddReactor("get", "*", func(core.Action) (bool, runtime.Object, error) { return true, stored, nil })

				pod := &v1.Pod{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: "test", Name: "pod",
						Annotations: map[string]string{kubetypes.ConfigSourceAnnotationKey: kubetypes.FileSource}, // waits for no services
					},
					Spec: v1.PodSpec{EnableServiceLinks: ptr.To(false)},
				}
				source.envFrom.Prefix = tc.prefix
				container := &v1.Container{Name: "main", EnvFrom: []v1.EnvFromSource{source.envFrom}}
				got, err := testKubelet.kubelet.environment(pod, container, nil)
				require.NoError(t, err)

				want := map[string]string{}
				for _, name := range tc.want {
					want[name] = "value of " + name[len(tc.prefix):]
				}
				env := map[string]string{}
				for _, envVar := range got {
					env[envVar.Name] = envVar.Value
				}
				assert.Equal(t, want, env)
				assert.Equal(t, unchanged, stored, "the object of the manager's cache")

				close(recorder.Events)
				var events []string
				for event := range recorder.Events {
					events = append(events, event)
				}
				var wantEvents []string
				if tc.wantEvent != "" {
					wantEvents = append(wantEvents, "Warning InvalidEnvironmentVariableNames "+fmt.Sprintf(tc.wantEvent, source.kind))
				}
				assert.Equal(t, wantEvents, events)
			})
		}
	}
}
