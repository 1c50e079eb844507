// Package oldclient has a client of Kubernetes v1.19, the last one with PodPreset, use the
// PodPresets of a cluster of today.
package oldclient

import (
	"context"
	"flag"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	settingsv1alpha1 "k8s.io/api/settings/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	settingsclient "k8s.io/client-go/kubernetes/typed/settings/v1alpha1"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	kubeconfig = flag.String("kubeconfig", "", "file of the cluster")
	inContext  = flag.String("context", "", "of the kubeconfig; its current one if empty")
	namespace  = flag.String("namespace", "default", "where the presets are")
)

// database has a field of each kind that a preset can have.
func database(name string) *settingsv1alpha1.PodPreset {
	return &settingsv1alpha1.PodPreset{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"made-by": name}},
		Spec: settingsv1alpha1.PodPresetSpec{
			Selector: metav1.LabelSelector{
				MatchLabels:      map[string]string{"role": name},
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}}},
			},
			Env: []corev1.EnvVar{
				{Name: "DB_PORT", Value: "6379"},
				{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}},
			},
			EnvFrom:      []corev1.EnvFromSource{{Prefix: "P_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}},
			Volumes:      []corev1.Volume{{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			VolumeMounts: []corev1.VolumeMount{{Name: "cache", MountPath: "/cache", ReadOnly: true}},
		},
	}
}

var contentTypes = map[string]string{"json": runtime.ContentTypeJSON, "protobuf": runtime.ContentTypeProtobuf}

func TestOldClient(t *testing.T) {
	for name, contentType := range contentTypes {
		t.Run(name, func(t *testing.T) {
			use(t, newClient(t, contentType), "old-client-"+name)
		})
	}
}

func newClient(t *testing.T, contentType string) kubernetes.Interface {
	t.Helper()
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: *kubeconfig}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: *inContext}).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.ContentType, config.AcceptContentTypes = contentType, contentType
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func deletePreset(t *testing.T, presets settingsclient.PodPresetInterface, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := presets.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// use does with a preset all that a client can do.
func use(t *testing.T, client kubernetes.Interface, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	presets := client.SettingsV1alpha1().PodPresets(*namespace)
	t.Cleanup(func() { deletePreset(t, presets, name) })
	only := metav1.ListOptions{LabelSelector: "made-by=" + name}
	watched, err := presets.Watch(ctx, only)
	if err != nil {
		t.Fatalf("watch: %v", err)
	}
	defer watched.Stop()

	made := database(name)
	created, err := presets.Create(ctx, made, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	same := func(verb string, p *settingsv1alpha1.PodPreset) {
		t.Helper()
		if !equality.Semantic.DeepEqual(p.Spec, made.Spec) || p.UID != created.UID {
			t.Errorf("%s: got %+v, want %+v", verb, p, made)
		}
	}
	same("create", created)
	event := func(want watch.EventType) *settingsv1alpha1.PodPreset {
		t.Helper()
		select {
		case e := <-watched.ResultChan():
			p, ok := e.Object.(*settingsv1alpha1.PodPreset)
			if e.Type != want || !ok {
				t.Fatalf("watch: got %s of %T, want %s", e.Type, e.Object, want)
			}
			return p
		case <-ctx.Done():
			t.Fatalf("watch: no %s", want)
		}
		return nil
	}
	same("watch", event(watch.Added))

	got, err := presets.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	same("get", got)
	list, err := presets.List(ctx, only)
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("list: %v, %+v, want one", err, list)
	}
	same("list", &list.Items[0])

	patched, err := presets.Patch(ctx, name, types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"patched":"yes"}}}`), metav1.PatchOptions{})
	if err != nil || patched.Labels["patched"] != "yes" {
		t.Fatalf("patch: %v, labels %v", err, patched.Labels)
	}
	same("patch", patched)
	same("watch", event(watch.Modified))
	patched.Spec.Env[0].Value = "1"
	if _, err := presets.Update(ctx, patched, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("update of the spec: %v, want that it is invalid", err)
	}

	if err := presets.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete: %v", err)
	}
	same("watch", event(watch.Deleted))
	if _, err := presets.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get of what was deleted: %v", err)
	}
}
