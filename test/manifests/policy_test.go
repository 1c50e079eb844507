package manifests

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/admissionregistration/validation"
)

const special = "Logging:LogLevel:Default"

// TestPolicyIsValid is what an API server checks when the policy is applied: every
// expression compiles, of the type that it must have.
func TestPolicyIsValid(t *testing.T) {
	policy, binding := mustPolicy(t)
	internalPolicy, internalBinding := &admissionregistration.ValidatingAdmissionPolicy{}, &admissionregistration.ValidatingAdmissionPolicyBinding{}
	for from, to := range map[runtime.Object]runtime.Object{policy: internalPolicy, binding: internalBinding} {
		if err := legacyscheme.Scheme.Convert(from, to, nil); err != nil {
			t.Fatal(err)
		}
	}
	if errs := policyvalidation.ValidateValidatingAdmissionPolicy(internalPolicy); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
	if errs := policyvalidation.ValidateValidatingAdmissionPolicyBinding(internalBinding); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
	if binding.Spec.PolicyName != policy.Name {
		t.Errorf("the binding is of policy %s, the policy is %s", binding.Spec.PolicyName, policy.Name)
	}
}

func TestPolicyRefusesASpecialNameInEveryKind(t *testing.T) {
	s := newAPIServer(t)
	for _, name := range []string{"pods", "podtemplates", "replicationcontrollers", "deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "cronjobs"} {
		t.Run(name, func(t *testing.T) {
			expectRefused(t, s.create(name, objectOf(name, chosen, podOf(v1.EnvVar{Name: special}))), "app", special)
			expectAccepted(t, s.create(name, objectOf(name, chosen, podOf(v1.EnvVar{Name: "PLAIN"}))))
			expectAccepted(t, s.create(name, objectOf(name, "other", podOf(v1.EnvVar{Name: special}))))
			expectRefused(t, s.update(name, "", objectOf(name, chosen, podOf(v1.EnvVar{Name: special})), objectOf(name, chosen, podOf())), "app", special)
		})
	}
}

func TestPolicyLooksAtContainersOfEveryKind(t *testing.T) {
	s := newAPIServer(t)
	env := []v1.EnvVar{{Name: "PLAIN"}, {Name: special}}
	for name, test := range map[string]struct {
		spec          v1.PodSpec
		container, is string
	}{
		"an init container":  {v1.PodSpec{InitContainers: []v1.Container{{Name: "first"}, {Name: "setup", Env: env}}, Containers: podOf().Containers}, "setup", special},
		"a second container": {v1.PodSpec{Containers: []v1.Container{{Name: "app"}, {Name: "second", Env: env}}}, "second", special},
		"a prefix":           {v1.PodSpec{Containers: []v1.Container{{Name: "app", EnvFrom: []v1.EnvFromSource{{}, {Prefix: "DB_"}, {Prefix: "db:"}}}}}, "app", "db:"},
	} {
		t.Run(name, func(t *testing.T) {
			expectRefused(t, s.create("pods", objectOf("pods", chosen, test.spec)), test.container, test.is)
		})
	}
	t.Run("an ephemeral container", func(t *testing.T) {
		spec := podOf(v1.EnvVar{Name: "PLAIN"})
		spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug", Env: env}}}
		expectRefused(t, s.update("pods", "ephemeralcontainers", objectOf("pods", chosen, spec), objectOf("pods", chosen, podOf())), "debug", special)
	})
}

// TestPolicyUpdates is the KEP's rule for an update with the gate off: strict if the old
// object passes strict.
func TestPolicyUpdates(t *testing.T) {
	s := newAPIServer(t)
	strict, relaxed, other := podOf(v1.EnvVar{Name: "PLAIN"}), podOf(v1.EnvVar{Name: special}), podOf(v1.EnvVar{Name: special}, v1.EnvVar{Name: "an other"})
	for name, test := range map[string]struct {
		old, new v1.PodSpec
		refused  bool
	}{
		"no variable becomes strict":           {podOf(), strict, false},
		"no variable becomes special":          {podOf(), relaxed, true},
		"strict stays strict":                  {strict, strict, false},
		"strict becomes special":               {strict, relaxed, true},
		"special stays":                        {relaxed, relaxed, false},
		"special becomes strict":               {relaxed, strict, false},
		"special gets another special":         {relaxed, other, false},
		"the last special becomes no variable": {relaxed, podOf(), false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, resource := range []string{"pods", "deployments", "cronjobs"} {
				err := s.update(resource, "", objectOf(resource, chosen, test.new), objectOf(resource, chosen, test.old))
				if (err != nil) != test.refused {
					t.Errorf("%s: got %v, want refused: %v", resource, err, test.refused)
				}
			}
		})
	}
}

// TestPolicyIsTheStrictRule compares the expression with upstream's strict validation,
// for every character at every place of a name.
func TestPolicyIsTheStrictRule(t *testing.T) {
	s := newAPIServer(t)
	names := []string{".", "..", "...", "..a", ".a", "a..", ".-", "A B"}
	for c := ' '; c <= '~'; c++ {
		if c != '=' {
			names = append(names, string(c), string(c)+"A", "A"+string(c)+"A", "A"+string(c), "."+string(c))
		}
	}
	for _, name := range names {
		err := s.create("pods", objectOf("pods", chosen, podOf(v1.EnvVar{Name: name})))
		if strict := len(validation.IsEnvVarName(name)) == 0; strict != (err == nil) {
			t.Errorf("%q: strict: %v, the policy says %v", name, strict, err)
		}
	}
}

// TestPolicyIsWithinItsCost is about objects larger than any that people write: the API
// server stops expressions that cost too much, and then refuses the object.
func TestPolicyIsWithinItsCost(t *testing.T) {
	s := newAPIServer(t)
	var env []v1.EnvVar
	for i := range 2000 {
		env = append(env, v1.EnvVar{Name: fmt.Sprintf("A_NAME_OF_SOME_LENGTH_%07d", i)})
	}
	object := func(env ...v1.EnvVar) runtime.Object { return objectOf("deployments", chosen, podOf(env...)) }
	expectAccepted(t, s.create("deployments", object(env...)))
	expectAccepted(t, s.update("deployments", "", object(env...), object(env...)))
	for i := range env {
		env[i].Name = "1" + env[i].Name
	}
	expectRefused(t, s.create("deployments", object(env...)), "app", env[0].Name)
	expectAccepted(t, s.update("deployments", "", object(env...), object(env...)))
}

func expectRefused(t testing.TB, err error, container, name string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("container '%s': '%s' is no name", container, name)) {
		t.Errorf("want a refusal that names container %s and %s, got %v", container, name, err)
	}
}

func expectAccepted(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func podOf(env ...v1.EnvVar) v1.PodSpec {
	return v1.PodSpec{Containers: []v1.Container{{Name: "app", Env: env}}}
}

// objectOf is an object of resource in namespace, with a pod or a template of spec.
func objectOf(resource, namespace string, spec v1.PodSpec) runtime.Object {
	meta := metav1.ObjectMeta{Name: "object", Namespace: namespace}
	template := v1.PodTemplateSpec{Spec: spec}
	switch resource {
	case "pods":
		return &v1.Pod{ObjectMeta: meta, Spec: spec}
	case "podtemplates":
		return &v1.PodTemplate{ObjectMeta: meta, Template: template}
	case "replicationcontrollers":
		return &v1.ReplicationController{ObjectMeta: meta, Spec: v1.ReplicationControllerSpec{Template: &template}}
	case "deployments":
		return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Template: template}}
	case "replicasets":
		return &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Template: template}}
	case "statefulsets":
		return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Template: template}}
	case "daemonsets":
		return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Template: template}}
	case "jobs":
		return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: template}}
	case "cronjobs":
		return &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}}}}
	}
	panic("no object of resource " + resource)
}
