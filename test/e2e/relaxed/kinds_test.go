package relaxed

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/test/e2e/framework"
)

// kind is a kind of the API that is, or has a template of, a pod.
type kind struct {
	name string
	path string // of the pod's spec; empty where the API server does not validate it
	// dryRun has the API server validate and admit an object of the kind, and store nothing.
	dryRun func(ctx context.Context, client kubernetes.Interface, namespace string, spec v1.PodSpec) error
}

// Where the pod's spec is.
const (
	inPod         = "spec"
	inTemplate    = "spec.template.spec"
	inJobTemplate = "spec.jobTemplate.spec.template.spec"
	inPodTemplate = "template.spec"
)

var (
	objectMeta = metav1.ObjectMeta{Name: "object"}
	labels     = map[string]string{"app.kubernetes.io/name": "relaxed"}
	selector   = &metav1.LabelSelector{MatchLabels: labels}
	dryRun     = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
)

// kinds are all kinds of Kubernetes' own. Pod stands first.
var kinds = []kind{
	{"Pod", inPod, func(ctx context.Context, client kubernetes.Interface, ns string, spec v1.PodSpec) error {
		_, err := client.CoreV1().Pods(ns).Create(ctx, &v1.Pod{ObjectMeta: objectMeta, Spec: spec}, dryRun)
		return err
	}},
	{"PodTemplate", inPodTemplate, func(ctx context.Context, client kubernetes.Interface, ns string, spec v1.PodSpec) error {
		_, err := client.CoreV1().PodTemplates(ns).Create(ctx, &v1.PodTemplate{ObjectMeta: objectMeta, Template: templateOf(spec)}, dryRun)
		return err
	}},
	{"ReplicationController", inTemplate, func(ctx context.Context, client kubernetes.Interface, ns string, spec v1.PodSpec) error {
		template := templateOf(spec)
		_, err := client.CoreV1().ReplicationControllers(ns).Create(ctx, &v1.ReplicationController{ObjectMeta: objectMeta,
			Spec: v1.ReplicationControllerSpec{Selector: labels, Template: &template}}, dryRun)
		return err
	}},
	{"Deployment", inTemplate, func(ctx context.Context, client kubernetes.Interface, ns string, spec v1.PodSpec) error {
		_, err := client.AppsV1().Deployments(ns).Create(ctx, deploymentOf(spec), dryRun)
		return err
	}},
	{"ReplicaSet", inTemplate, func(ctx context.Context, client kubernetes.Interface, ns string, spec v1.PodSpec) error {
		_, err := client.AppsV1().ReplicaSets(ns).Create(ctx, &appsv1.ReplicaSet{ObjectMeta: objectMeta,
			Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: templateOf(spec)}}, dryRun)
		return err
	}},
	// From v1.29 to v1.33 no API server looks into a StatefulSet's containers: they are
	// validated in its pods.
	{"StatefulSet", "", func(ctx context.Context, client kubernetes.Interface, ns string, spec v1.PodSpec) error {
		_, err := client.AppsV1().StatefulSets(ns).Create(ctx, statefulSetOf(spec), dryRun)
		return err
	}},
	{"DaemonSet", inTemplate, func(ctx context.Context, client kubernetes.Interface, ns string, spec v1.PodSpec) error {
		_, err := client.AppsV1().DaemonSets(ns).Create(ctx, &appsv1.DaemonSet{ObjectMeta: objectMeta,
			Spec: appsv1.DaemonSetSpec{Selector: selector, Template: templateOf(spec)}}, dryRun)
		return err
	}},
	{"Job", inTemplate, func(ctx context.Context, client kubernetes.Interface, ns string, spec v1.PodSpec) error {
		_, err := client.BatchV1().Jobs(ns).Create(ctx, &batchv1.Job{ObjectMeta: objectMeta, Spec: jobOf(spec)}, dryRun)
		return err
	}},
	{"CronJob", inJobTemplate, func(ctx context.Context, client kubernetes.Interface, ns string, spec v1.PodSpec) error {
		_, err := client.BatchV1().CronJobs(ns).Create(ctx, &batchv1.CronJob{ObjectMeta: objectMeta,
			Spec: batchv1.CronJobSpec{Schedule: "@yearly", JobTemplate: batchv1.JobTemplateSpec{Spec: jobOf(spec)}}}, dryRun)
		return err
	}},
}

func templateOf(spec v1.PodSpec) v1.PodTemplateSpec {
	spec.RestartPolicy = v1.RestartPolicyAlways
	return v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}
}

func jobOf(spec v1.PodSpec) batchv1.JobSpec {
	spec.RestartPolicy = v1.RestartPolicyNever
	return batchv1.JobSpec{Template: v1.PodTemplateSpec{Spec: spec}}
}

// deploymentOf is a Deployment that makes no pods.
func deploymentOf(spec v1.PodSpec) *appsv1.Deployment {
	none := int32(0)
	return &appsv1.Deployment{ObjectMeta: objectMeta, Spec: appsv1.DeploymentSpec{Replicas: &none, Selector: selector, Template: templateOf(spec)}}
}

func statefulSetOf(spec v1.PodSpec) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: objectMeta, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: templateOf(spec)}}
}

// named is a pod with the variable, and with an init container.
func named(name string) v1.PodSpec {
	setup := dumps()
	setup.Name = "setup"
	return v1.PodSpec{InitContainers: []v1.Container{setup}, Containers: []v1.Container{dumps(literal("PLAIN"), literal(name))}}
}

// prefixed is a pod with an envFrom that has the prefix.
func prefixed(prefix string) v1.PodSpec {
	spec := named("OTHER")
	from := fromConfigMap()
	from.Prefix = prefix
	spec.Containers[0].EnvFrom = []v1.EnvFromSource{from}
	return spec
}

var _ = describe("the API server accepts special names and prefixes in", func(f *framework.Framework) {
	for _, kind := range kinds {
		f.It("a "+kind.name, func(ctx context.Context) {
			for _, special := range []string{story, "1ST", " ", `"`} {
				framework.ExpectNoError(kind.dryRun(ctx, f.ClientSet, f.Namespace.Name, named(special)), "name %q", special)
				framework.ExpectNoError(kind.dryRun(ctx, f.ClientSet, f.Namespace.Name, prefixed(special)), "prefix %q", special)
			}
		})

		if kind.path == "" {
			continue
		}
		ginkgo.DescribeTable("a "+kind.name+", but refuses", func(ctx context.Context, name string) {
			expectInvalid(kind.dryRun(ctx, f.ClientSet, f.Namespace.Name, named(name)), kind.path+".containers[0].env[1].name")
			if name != "" { // no prefix at all
				expectInvalid(kind.dryRun(ctx, f.ClientSet, f.Namespace.Name, prefixed(name)), kind.path+".containers[0].envFrom[0].prefix")
			}
		},
			ginkgo.Entry("an empty name", ""),
			ginkgo.Entry("an equals sign", "A=B"),
			ginkgo.Entry("a tab", "A\tB"),
			ginkgo.Entry("the character after the last printable one", "A\x7f"),
			ginkgo.Entry("a letter outside of ASCII", "Ä"),
		)
	}
})

// expectInvalid checks that err is the API server's answer with an error on field, and
// on no other.
func expectInvalid(err error, field string) {
	ginkgo.GinkgoHelper()
	gomega.Expect(fieldsOf(err)).To(gomega.ConsistOf(field), "fields of %v", err)
}
