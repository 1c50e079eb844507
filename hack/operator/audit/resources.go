package audit

import (
	"context"
	"iter"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// resource is one resource of the API whose objects are pods or have a pod template.
type resource struct {
	kind string
	name string // as kubectl and RBAC have it, with its group
	list func(kubernetes.Interface, string) lister
}

// lister lists one page of a resource.
type lister func(context.Context, metav1.ListOptions) (*page, error)

// page is what a lister returns: how to get the next page, and the objects.
type page struct {
	next string
	pods iter.Seq2[*metav1.ObjectMeta, *v1.PodSpec]
}

// resources are all that Kubernetes itself has. Controllers stand before what they
// make, so that a use is known in the owner when it is met again in the owned.
var resources = []resource{
	{"CronJob", "cronjobs.batch", func(client kubernetes.Interface, namespace string) lister {
		return listerOf(client.BatchV1().CronJobs(namespace).List,
			func(l *batchv1.CronJobList) []batchv1.CronJob { return l.Items },
			func(o *batchv1.CronJob) (*metav1.ObjectMeta, *v1.PodSpec) {
				return &o.ObjectMeta, &o.Spec.JobTemplate.Spec.Template.Spec
			})
	}},
	{"DaemonSet", "daemonsets.apps", func(client kubernetes.Interface, namespace string) lister {
		return listerOf(client.AppsV1().DaemonSets(namespace).List,
			func(l *appsv1.DaemonSetList) []appsv1.DaemonSet { return l.Items },
			func(o *appsv1.DaemonSet) (*metav1.ObjectMeta, *v1.PodSpec) {
				return &o.ObjectMeta, &o.Spec.Template.Spec
			})
	}},
	{"Deployment", "deployments.apps", func(client kubernetes.Interface, namespace string) lister {
		return listerOf(client.AppsV1().Deployments(namespace).List,
			func(l *appsv1.DeploymentList) []appsv1.Deployment { return l.Items },
			func(o *appsv1.Deployment) (*metav1.ObjectMeta, *v1.PodSpec) {
				return &o.ObjectMeta, &o.Spec.Template.Spec
			})
	}},
	{"PodTemplate", "podtemplates", func(client kubernetes.Interface, namespace string) lister {
		return listerOf(client.CoreV1().PodTemplates(namespace).List,
			func(l *v1.PodTemplateList) []v1.PodTemplate { return l.Items },
			func(o *v1.PodTemplate) (*metav1.ObjectMeta, *v1.PodSpec) {
				return &o.ObjectMeta, &o.Template.Spec
			})
	}},
	{"ReplicationController", "replicationcontrollers", func(client kubernetes.Interface, namespace string) lister {
		return listerOf(client.CoreV1().ReplicationControllers(namespace).List,
			func(l *v1.ReplicationControllerList) []v1.ReplicationController { return l.Items },
			func(o *v1.ReplicationController) (*metav1.ObjectMeta, *v1.PodSpec) {
				if o.Spec.Template == nil {
					return &o.ObjectMeta, &v1.PodSpec{}
				}
				return &o.ObjectMeta, &o.Spec.Template.Spec
			})
	}},
	{"StatefulSet", "statefulsets.apps", func(client kubernetes.Interface, namespace string) lister {
		return listerOf(client.AppsV1().StatefulSets(namespace).List,
			func(l *appsv1.StatefulSetList) []appsv1.StatefulSet { return l.Items },
			func(o *appsv1.StatefulSet) (*metav1.ObjectMeta, *v1.PodSpec) {
				return &o.ObjectMeta, &o.Spec.Template.Spec
			})
	}},
	{"Job", "jobs.batch", func(client kubernetes.Interface, namespace string) lister {
		return listerOf(client.BatchV1().Jobs(namespace).List,
			func(l *batchv1.JobList) []batchv1.Job { return l.Items },
			func(o *batchv1.Job) (*metav1.ObjectMeta, *v1.PodSpec) {
				return &o.ObjectMeta, &o.Spec.Template.Spec
			})
	}},
	{"ReplicaSet", "replicasets.apps", func(client kubernetes.Interface, namespace string) lister {
		return listerOf(client.AppsV1().ReplicaSets(namespace).List,
			func(l *appsv1.ReplicaSetList) []appsv1.ReplicaSet { return l.Items },
			func(o *appsv1.ReplicaSet) (*metav1.ObjectMeta, *v1.PodSpec) {
				return &o.ObjectMeta, &o.Spec.Template.Spec
			})
	}},
	{"Pod", "pods", func(client kubernetes.Interface, namespace string) lister {
		return listerOf(client.CoreV1().Pods(namespace).List,
			func(l *v1.PodList) []v1.Pod { return l.Items },
			func(o *v1.Pod) (*metav1.ObjectMeta, *v1.PodSpec) {
				return &o.ObjectMeta, &o.Spec
			})
	}},
}

// Resources names what an audit reads, as kubectl and RBAC have it.
func Resources() []string {
	names := []string{"configmaps", "secrets"}
	for _, r := range resources {
		names = append(names, r.name)
	}
	return names
}

// listerOf is the lister of a typed client's list function.
func listerOf[L metav1.ListInterface, T any](
	list func(context.Context, metav1.ListOptions) (L, error),
	items func(L) []T,
	specOf func(*T) (*metav1.ObjectMeta, *v1.PodSpec),
) lister {
	return func(ctx context.Context, options metav1.ListOptions) (*page, error) {
		l, err := list(ctx, options)
		if err != nil {
			return nil, err
		}
		all := items(l)
		return &page{next: l.GetContinue(), pods: func(yield func(*metav1.ObjectMeta, *v1.PodSpec) bool) {
			for i := range all {
				if !yield(specOf(&all[i])) {
					return
				}
			}
		}}, nil
	}
}
