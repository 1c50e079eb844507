package audit

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

func TestEveryKindIsLookedAt(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "object", Namespace: "ns"}
	spec := podOf("c", fromFile("F"))
	template := v1.PodTemplateSpec{Spec: spec}
	for kind, object := range map[string]runtime.Object{
		"Pod":                   &v1.Pod{ObjectMeta: meta, Spec: spec},
		"PodTemplate":           &v1.PodTemplate{ObjectMeta: meta, Template: template},
		"ReplicationController": &v1.ReplicationController{ObjectMeta: meta, Spec: v1.ReplicationControllerSpec{Template: &template}},
		"Deployment":            &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Template: template}},
		"ReplicaSet":            &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Template: template}},
		"StatefulSet":           &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Template: template}},
		"DaemonSet":             &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Template: template}},
		"Job":                   &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: template}},
		"CronJob": &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}},
		}},
	} {
		t.Run(kind, func(t *testing.T) {
			report := mustRun(t, fake.NewClientset(object), Options{})
			want := []Finding{{Namespace: "ns", Kind: kind, Name: "object", Container: "c", Variable: "F", What: FileKeyRef}}
			if diff := cmp.Diff(want, report.Findings); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if report.Objects != 1 {
				t.Errorf("looked at %d objects, want 1", report.Objects)
			}
		})
	}
}

func TestAReplicationControllerMayHaveNoTemplate(t *testing.T) {
	report := mustRun(t, fake.NewClientset(&v1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Name: "rc", Namespace: "ns"}}), Options{})
	if len(report.Findings) != 0 || report.Objects != 1 {
		t.Errorf("got %+v", report)
	}
}

// The findings of one object stay in the order of its variables.
func TestFindingsAreSortedAndNameTheOwner(t *testing.T) {
	objects := append(web("b", fromFile("F"), literal("1")), web("a", fromFile("F"))...)
	if got, want := lines(mustRun(t, fake.NewClientset(objects...), Options{})), []string{
		"a/Deployment/web F", "a/Pod/web-1-x F of ReplicaSet/web-1", "a/ReplicaSet/web-1 F of Deployment/web",
		"b/Deployment/web F", "b/Deployment/web 1", "b/Pod/web-1-x F of ReplicaSet/web-1", "b/Pod/web-1-x 1 of ReplicaSet/web-1",
		"b/ReplicaSet/web-1 F of Deployment/web", "b/ReplicaSet/web-1 1 of Deployment/web",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOwnersOnly(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(objects []runtime.Object) // a Deployment, its ReplicaSet, its pod
		want []string
	}{
		"a use is listed once, in the Deployment": {
			edit: func([]runtime.Object) {},
			want: []string{"ns/Deployment/web F"},
		},
		"a use that an older template made is listed in the ReplicaSet": {
			edit: func(objects []runtime.Object) { objects[0].(*appsv1.Deployment).Spec.Template.Spec = podOf("c") },
			want: []string{"ns/ReplicaSet/web-1 F of Deployment/web"},
		},
		"a use that only the pod has is listed in the pod": {
			edit: func(objects []runtime.Object) {
				pod := objects[2].(*v1.Pod)
				pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, literal("1"))
			},
			want: []string{"ns/Deployment/web F", "ns/Pod/web-1-x 1 of ReplicaSet/web-1"},
		},
		"an owner that is no workload of Kubernetes hides nothing": {
			edit: func(objects []runtime.Object) { objects[2].(*v1.Pod).OwnerReferences[0].UID = "of a custom resource" },
			want: []string{"ns/Deployment/web F", "ns/Pod/web-1-x F of ReplicaSet/web-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := web("ns", fromFile("F"))
			test.edit(objects)
			if got := lines(mustRun(t, fake.NewClientset(objects...), Options{OwnersOnly: true})); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestNamespace(t *testing.T) {
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	client := fake.NewClientset(append(append(web("a", fromFile("F")), web("b", fromFile("F"))...), namespace)...)
	if report := mustRun(t, client, Options{Namespace: "a"}); report.Objects != 3 {
		t.Errorf("looked at %d objects, want the 3 of the namespace", report.Objects)
	}
	if _, err := Run(t.Context(), client, Options{Namespace: "typo"}); !errors.Is(err, ErrNoNamespace) || !strings.Contains(err.Error(), "typo") {
		t.Errorf("want ErrNoNamespace that names it, got %v", err)
	}
	client.PrependReactor("get", "namespaces", refuse(apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "b", nil)))
	if report := mustRun(t, client, Options{Namespace: "b"}); report.Objects != 3 {
		t.Errorf("looked at %d objects, want those of a namespace that may not be got", report.Objects)
	}
}

func TestErrorsOfOneResource(t *testing.T) {
	replicaSets := schema.GroupResource{Group: "apps", Resource: "replicasets"}
	for name, test := range map[string]struct {
		err    error
		unread string // in the report
	}{
		"a resource that is forbidden is named, and the others are read":  {apierrors.NewForbidden(replicaSets, "", errors.New("no role")), "list replicasets.apps: "},
		"a resource that fails is named, and the others are read":         {apierrors.NewInternalError(errors.New("etcd")), "list replicasets.apps: "},
		"a resource that the server does not have is passed over quietly": {apierrors.NewNotFound(replicaSets, ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(web("ns", fromFile("F"))...)
			client.PrependReactor("list", "replicasets", refuse(test.err))
			report := mustRun(t, client, Options{})
			if got, want := lines(report), []string{"ns/Deployment/web F", "ns/Pod/web-1-x F of ReplicaSet/web-1"}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			if err := errors.Join(report.Unread...); (err != nil) != (test.unread != "") ||
				err != nil && (!errors.Is(err, test.err) || !strings.HasPrefix(err.Error(), test.unread)) {
				t.Errorf("unread: got %v, want %q", err, test.unread)
			}
		})
	}
}

func TestWhatEndsAnAudit(t *testing.T) {
	for name, err := range map[string]error{
		"no answer":            errors.New("connection refused"),
		"unknown credentials":  apierrors.NewUnauthorized("who?"),
		"none of the resource": apierrors.NewNotFound(schema.GroupResource{}, ""),
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("list", "*", refuse(err))
			if report, err := Run(t.Context(), client, Options{}); err == nil {
				t.Errorf("want an error, got %+v", report)
			}
		})
	}
	t.Run("Ctrl-C", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		client := fake.NewClientset()
		client.PrependReactor("list", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
			stop()
			return true, nil, ctx.Err()
		})
		if _, err := Run(ctx, client, Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("want context.Canceled, got %v", err)
		}
	})
}

func TestAnAuditOnlyReads(t *testing.T) {
	client := fake.NewClientset(append(web("ns", fromFile("F")), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})...)
	mustRun(t, client, Options{Namespace: "ns"})
	if len(client.Actions()) != len(resources)+1 {
		t.Errorf("want a request for each of %d resources and one for the namespace, got %d", len(resources), len(client.Actions()))
	}
	for _, action := range client.Actions() {
		if verb := action.GetVerb(); verb != "list" && verb != "get" {
			t.Errorf("%s %s", verb, action.GetResource().Resource)
		}
	}
}

func mustRun(t testing.TB, client *fake.Clientset, o Options) *Report {
	t.Helper()
	report, err := Run(t.Context(), client, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// refuse answers every request with err.
func refuse(err error) clienttesting.ReactionFunc {
	return func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err }
}

// web is a Deployment, its ReplicaSet and its pod.
func web(namespace string, env ...v1.EnvVar) []runtime.Object {
	meta := func(name string, uid types.UID, owners ...metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid, OwnerReferences: owners}
	}
	template := func() v1.PodTemplateSpec { return v1.PodTemplateSpec{Spec: podOf("c", slices.Clone(env)...)} }
	deployment := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "1", Controller: ptr.To(true)}
	replicaSet := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "2", Controller: ptr.To(true)}
	return []runtime.Object{
		&appsv1.Deployment{ObjectMeta: meta("web", "1"), Spec: appsv1.DeploymentSpec{Template: template()}},
		&appsv1.ReplicaSet{ObjectMeta: meta("web-1", "2", deployment), Spec: appsv1.ReplicaSetSpec{Template: template()}},
		&v1.Pod{ObjectMeta: meta("web-1-x", "3", replicaSet), Spec: podOf("c", slices.Clone(env)...)},
	}
}

// lines are the findings as NAMESPACE/KIND/NAME VARIABLE, with the owner.
func lines(report *Report) []string {
	var lines []string
	for _, f := range report.Findings {
		line := f.Namespace + "/" + f.Kind + "/" + f.Name + " " + f.Variable
		if f.Owner != "" {
			line += " of " + f.Owner
		}
		lines = append(lines, line)
	}
	return lines
}
