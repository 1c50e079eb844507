package relaxed

import (
	"context"
	"errors"
	"net/http"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
)

// flip_test.go is about objects that were stored while the gate was on.
var _ = describeIf(components.RequireGateOff, "with the gate off", func(f *framework.Framework) {
	for _, kind := range kinds {
		f.It("a new "+kind.name+" with a special name or prefix is refused, as on every Kubernetes before", suite.Shows("KEP-4369", "create off"), func(ctx context.Context) {
			for _, special := range []string{story, "1ST", " ", `"`, "..", "A\x7f"} {
				kind.expectInvalid(f, kind.dryRun(ctx, f.DynamicClient, f.Namespace.Name, named(special)), ".containers[0].env[1].name")
				kind.expectInvalid(f, kind.dryRun(ctx, f.DynamicClient, f.Namespace.Name, prefixed(special)), ".containers[0].envFrom[0].prefix")
			}
			framework.ExpectNoError(kind.dryRun(ctx, f.DynamicClient, f.Namespace.Name, named("a.b-C_1")))
		})
	}

	for _, kind := range kinds {
		if kind.fixed {
			continue
		}
		f.It("a special name cannot be brought into a strict "+kind.name, suite.Shows("KEP-4369", "update off strict"), func(ctx context.Context) {
			_, err := kind.create(ctx, f.DynamicClient, f.Namespace.Name, gated(named("OTHER")), metav1.CreateOptions{})
			framework.ExpectNoError(err)
			_, err = kind.patch(ctx, f.DynamicClient, f.Namespace.Name, []v1.EnvVar{literal("PLAIN"), literal("OTHER"), literal(story)})
			if kind.takesAnything(f) {
				framework.ExpectNoError(err)
				return
			}
			// Kubernetes validates some kinds twice on update, and says everything twice.
			gomega.Expect(fieldsOf(err)).To(gomega.SatisfyAll(
				gomega.Not(gomega.BeEmpty()), gomega.HaveEach(kind.path+".containers[0].env[2].name")), "fields of %v", err)
			_, err = kind.patch(ctx, f.DynamicClient, f.Namespace.Name, []v1.EnvVar{literal("PLAIN"), literal("OTHER"), literal("a.b-C_1")})
			framework.ExpectNoError(err)
		})
	}

	f.It("an ephemeral container with a special name is refused", suite.Shows("KEP-4369", "update off strict"), func(ctx context.Context) {
		expectInvalid(debug(ctx, f, literal(story)), "spec.ephemeralContainers[0].env[0].name")
	})
})

var _ = describeIf(components.RequireGateOffInKubelets, "with the gate off in kubelets", func(f *framework.Framework) {
	f.It("the kubelet of v1.29 leaves out keys that the strict rule refuses, and an event names them; a later one sets them", func(ctx context.Context) {
		createKeys(ctx, f, map[string]string{"1ST": "left out", "KEPT": "kept"}, map[string]string{"2ND": "left out", "a.b": "kept"})
		container := dumps()
		container.EnvFrom = []v1.EnvFromSource{fromConfigMap(), fromSecret()}
		pod := pods.Once("keys", container)
		pods.RunToEnd(ctx, f, pod)

		if !olderThan(f, 30) {
			gomega.Expect(seen(ctx, f, pod.Name)).To(gomega.Equal(map[string]string{"KEPT": "kept", "a.b": "kept", "1ST": "left out", "2ND": "left out"}))
			gomega.Expect(eventsOf(ctx, f, pod.Name)).NotTo(gomega.ContainElement(gomega.HaveField("Reason", invalidNames)))
			return
		}
		gomega.Expect(seen(ctx, f, pod.Name)).To(gomega.Equal(map[string]string{"KEPT": "kept", "a.b": "kept"}))
		gomega.Eventually(ctx, func(ctx context.Context) []v1.Event { return eventsOf(ctx, f, pod.Name) }).
			WithTimeout(f.Timeouts.PodStartShort).Should(gomega.SatisfyAll(
			gomega.ContainElement(gomega.SatisfyAll(gomega.HaveField("Reason", invalidNames), gomega.HaveField("Message", gomega.ContainSubstring("1ST")))),
			gomega.ContainElement(gomega.SatisfyAll(gomega.HaveField("Reason", invalidNames), gomega.HaveField("Message", gomega.ContainSubstring("2ND"))))))
	})
})

// fieldsOf are the fields that the API server's answer 422 complains about.
func fieldsOf(err error) []string {
	ginkgo.GinkgoHelper()
	var status apierrors.APIStatus
	gomega.Expect(errors.As(err, &status)).To(gomega.BeTrueBecause("the API server refuses it with a status, got %v", err))
	gomega.Expect(status.Status().Code).To(gomega.BeEquivalentTo(http.StatusUnprocessableEntity))
	gomega.Expect(status.Status().Details).NotTo(gomega.BeNil())
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		fields = append(fields, cause.Field)
	}
	return fields
}
