package expand

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper"
	"k8s.io/kubernetes/pkg/kubelet/envvars"
)

// services are the variables that the kubelet adds for services.
type services struct {
	values  map[string]string // by the variable's name
	service map[string]string // the service, by the variable's name
	// unknown says why the services of the namespace are not known, and unknownAPIServer
	// why that of the API server is not; both are empty if they are known.
	unknown, unknownAPIServer string
}

// apiServer is the service whose variables every pod has.
const apiServer = "kubernetes"

// serviceVariable is what the names of services' variables look like.
var serviceVariable = regexp.MustCompile(`^[A-Z0-9_]+_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// readServices returns the variables of the services that a pod in namespace sees.
// links is the pod's enableServiceLinks. As in the kubelet, a service of the namespace
// with the API server's name takes the place of the one in "default", with all its variables.
func readServices(ctx context.Context, client kubernetes.Interface, namespace string, links bool) (*services, error) {
	s := &services{values: map[string]string{}, service: map[string]string{}}
	if client == nil {
		const why = "give a cluster with --kubeconfig to read the services"
		s.unknownAPIServer = why
		if links {
			s.unknown = why
		}
		return s, nil
	}
	visible := map[string]*corev1.Service{}
	add := func(service *corev1.Service) {
		if helper.IsServiceIPSet(service) {
			visible[service.Name] = service
		}
	}
	master, err := client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, apiServer, metav1.GetOptions{})
	switch {
	case err == nil:
		add(master)
	case apierrors.IsForbidden(err):
		s.unknownAPIServer = "you may not read service default/" + apiServer + " in the cluster"
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading the service of the API server: %w", err)
	}
	if links {
		list, err := client.CoreV1().Services(namespace).List(ctx, metav1.ListOptions{})
		switch {
		case apierrors.IsForbidden(err):
			s.unknown = "you may not list services in the cluster"
		case err != nil:
			return nil, fmt.Errorf("listing the services of namespace %s: %w", namespace, err)
		default:
			for i := range list.Items {
				add(&list.Items[i])
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(visible)) {
		for _, v := range envvars.FromServices([]*corev1.Service{visible[name]}) {
			s.values[v.Name], s.service[v.Name] = v.Value, name
		}
	}
	return s, nil
}

// whyUnknown returns why name may be the variable of a service that is not known, or
// nothing if it cannot be one.
func (s *services) whyUnknown(name string) string {
	switch {
	case !serviceVariable.MatchString(name):
		return ""
	case strings.HasPrefix(name, "KUBERNETES_") && s.unknownAPIServer != "":
		return s.unknownAPIServer
	}
	return s.unknown
}
