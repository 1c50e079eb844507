package expand

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/kubelet/envvars"
)

// services are the variables that the kubelet adds for services.
type services struct {
	values  map[string]string // by the variable's name
	service map[string]string // the service, by the variable's name
	// unknown says why the services are not known; empty if they are.
	unknown string
	// links is false where a pod gets only the API server's.
	links bool
}

// apiServer is the service whose variables every pod has.
const apiServer = "kubernetes"

// serviceVariable is what the names of services' variables look like.
var serviceVariable = regexp.MustCompile(`^[A-Z0-9_]+_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// readServices returns the variables of the services that a pod in namespace sees.
// links is the pod's enableServiceLinks. As in the kubelet, the namespace's own
// service of the API server's name comes before the one in "default".
func readServices(ctx context.Context, client kubernetes.Interface, namespace string, links bool) (*services, error) {
	s := &services{values: map[string]string{}, service: map[string]string{}, links: links}
	if client == nil {
		s.unknown = "give a cluster with --kubeconfig to read the services"
		return s, nil
	}
	var visible []corev1.Service
	if links {
		list, err := client.CoreV1().Services(namespace).List(ctx, metav1.ListOptions{})
		if apierrors.IsForbidden(err) {
			s.unknown = "you may not list services in the cluster"
			return s, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing the services of namespace %s: %w", namespace, err)
		}
		visible = list.Items
	}
	master, err := client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, apiServer, metav1.GetOptions{})
	switch {
	case err == nil:
		visible = append([]corev1.Service{*master}, visible...)
	case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
		return nil, fmt.Errorf("reading the service of the API server: %w", err)
	}
	for i := range visible {
		for _, v := range envvars.FromServices([]*corev1.Service{&visible[i]}) {
			s.values[v.Name], s.service[v.Name] = v.Value, visible[i].Name
		}
	}
	return s, nil
}

// mayHave reports whether name can be a service's variable as far as is known.
func (s *services) mayHave(name string) bool {
	return s.unknown != "" && serviceVariable.MatchString(name) &&
		(s.links || strings.HasPrefix(name, "KUBERNETES_"))
}
