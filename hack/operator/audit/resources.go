package audit

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"podenv.dev/hack/operator/manifest"
)

// resource is one resource of the API whose objects are pods or have a pod template.
type resource struct {
	kind string
	name string // as kubectl and RBAC have it, with its group
	list func(kubernetes.Interface, string) lister
}

// lister lists one page of a resource, and says how to get the next one.
type lister func(context.Context, metav1.ListOptions) (objects []runtime.Object, next string, err error)

// resources are all that Kubernetes itself has. Controllers stand before what they
// make, so that a use is known in the owner when it is met again in the owned.
var resources = []resource{
	{"CronJob", "cronjobs.batch", func(client kubernetes.Interface, namespace string) lister {
		return listerOf(client.BatchV1().CronJobs(namespace).List)
	}},
	{"DaemonSet", "daemonsets.apps", func(client kubernetes.Interface, namespace string) lister {
		return listerOf(client.AppsV1().DaemonSets(namespace).List)
	}},
	{"Deployment", "deployments.apps", func(client kubernetes.Interface, namespace string) lister {
		return listerOf(client.AppsV1().Deployments(namespace).List)
	}},
	{"PodTemplate", "podtemplates", func(client kubernetes.Interface, namespace string) lister {
		return listerOf(client.CoreV1().PodTemplates(namespace).List)
	}},
	{"ReplicationController", "replicationcontrollers", func(client kubernetes.Interface, namespace string) lister {
		return listerOf(client.CoreV1().ReplicationControllers(namespace).List)
	}},
	{"StatefulSet", "statefulsets.apps", func(client kubernetes.Interface, namespace string) lister {
		return listerOf(client.AppsV1().StatefulSets(namespace).List)
	}},
	{"Job", "jobs.batch", func(client kubernetes.Interface, namespace string) lister {
		return listerOf(client.BatchV1().Jobs(namespace).List)
	}},
	{"ReplicaSet", "replicasets.apps", func(client kubernetes.Interface, namespace string) lister {
		return listerOf(client.AppsV1().ReplicaSets(namespace).List)
	}},
	{"Pod", "pods", func(client kubernetes.Interface, namespace string) lister {
		return listerOf(client.CoreV1().Pods(namespace).List)
	}},
}

// listOf is a list of objects with its metadata.
type listOf interface {
	runtime.Object
	metav1.ListInterface
}

// listerOf is the lister of a typed client's list function.
func listerOf[L listOf](list func(context.Context, metav1.ListOptions) (L, error)) lister {
	return func(ctx context.Context, options metav1.ListOptions) ([]runtime.Object, string, error) {
		l, err := list(ctx, options)
		if err != nil {
			return nil, "", err
		}
		objects, err := meta.ExtractList(l)
		return objects, l.GetContinue(), err
	}
}

// podSpec returns the metadata of a pod or workload, and the spec of its pods.
func podSpec(object runtime.Object) (*metav1.ObjectMeta, *v1.PodSpec) {
	if pod, ok := object.(*v1.Pod); ok {
		return &pod.ObjectMeta, &pod.Spec
	}
	metadata, template, _ := manifest.Template(object)
	return metadata, &template.Spec
}
