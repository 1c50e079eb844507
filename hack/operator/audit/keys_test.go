package audit

import (
	"errors"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
)

// keysCluster has a pod whose envFrom names a ConfigMap twice, a Secret, and a ConfigMap
// that does not exist.
func keysCluster() *fake.Clientset {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }
	configMap := func(name, prefix string) v1.EnvFromSource {
		return v1.EnvFromSource{Prefix: prefix, ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: name}}}
	}
	return fake.NewClientset(
		&v1.ConfigMap{ObjectMeta: meta("app"), Data: map[string]string{"1A": "a", "PLAIN": "b", "..c": "d"}},
		&v1.Secret{ObjectMeta: meta("db"), Data: map[string][]byte{"9S": []byte("s")}},
		&v1.Pod{ObjectMeta: meta("pod"), Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", EnvFrom: []v1.EnvFromSource{
			configMap("app", ""), configMap("app", "P_"), configMap("none", ""), configMap("app", "1"),
			{SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "db"}}},
		}}}}},
	)
}

func TestKeysThatEnvFromBrings(t *testing.T) {
	client := keysCluster()
	report := mustRun(t, client, Options{})
	var got []string
	for _, f := range report.Findings {
		got = append(got, f.Variable+" "+f.What)
	}
	// A prefix that is refused itself says it all; with a good one the name is good.
	want := []string{"1 " + RelaxedPrefix, "..c " + RelaxedKey, "1A " + RelaxedKey, "9S " + RelaxedKey}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	reads := map[string]int{}
	for _, action := range client.Actions() {
		if action.GetVerb() == "get" {
			reads[action.GetResource().Resource]++
		}
	}
	if reads["configmaps"] != 2 || reads["secrets"] != 1 {
		t.Errorf("each object is read once; got %v", reads)
	}
	if report := mustRun(t, keysCluster(), Options{SkipKeys: true}); len(report.Findings) != 1 {
		t.Errorf("SkipKeys: got %+v", report.Findings)
	}
}

func TestKeysThatMayNotBeRead(t *testing.T) {
	client := keysCluster()
	client.PrependReactor("get", "secrets", refuse(apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "db", errors.New("no role"))))
	report := mustRun(t, client, Options{})
	if len(report.Findings) != 3 || len(report.Unread) != 1 || !strings.HasPrefix(report.Unread[0].Error(), "get secrets: ") {
		t.Errorf("got %+v", report)
	}
	client.PrependReactor("get", "configmaps", refuse(errors.New("connection refused")))
	if _, err := Run(t.Context(), client, Options{}); err == nil || !strings.Contains(err.Error(), "get configmaps ns/app") {
		t.Errorf("want an error, got %v", err)
	}
}

func TestTheKeyOfAnEnvFile(t *testing.T) {
	variable := fromFile("F")
	variable.ValueFrom.FileKeyRef.Key = "1 key"
	spec := podOf("c", variable)
	want := []use{{"c", "F", FileKeyRef}, {"c", "1 key", RelaxedKey}}
	if got := uses(&spec); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
