package inject

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	registration "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// outcome is what a user sees who creates a pod.
type outcome struct {
	env      string // of the first container
	warnings []string
	err      error
}

func (s *server) outcome(t *testing.T, namespace, spec string) (o outcome) {
	t.Helper()
	seen := &warnings{}
	config := rest.CopyConfig(s.config)
	config.WarningHandler = seen
	made, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods(namespace).Create(t.Context(), podOf(t, spec, "frontend"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if o.err = err; err == nil {
		var env []string
		for _, e := range made.Spec.Containers[0].Env {
			env = append(env, e.Name+"="+e.Value)
		}
		o.env = strings.Join(env, " ")
	}
	o.warnings = seen.texts
	return o
}

type warnings struct {
	sync.Mutex
	texts []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.Lock()
	defer w.Unlock()
	w.texts = append(w.texts, text)
}

// expect fails unless the pod has env, and its creation a warning or an error that has the word warning or failure.
func (o outcome) expect(t *testing.T, env, warning, failure string) {
	t.Helper()
	warned := slices.ContainsFunc(o.warnings, func(text string) bool { return warning != "" && strings.Contains(text, warning) })
	if (o.err != nil) != (failure != "") || o.err != nil && !strings.Contains(o.err.Error(), failure) {
		t.Errorf("creation: %v, want an error with %q", o.err, failure)
	}
	if o.env != env || warned != (warning != "") || warning == "" && len(o.warnings) > 0 {
		t.Errorf("the pod has %q, warnings %q; want %q, a warning with %q", o.env, o.warnings, env, warning)
	}
}

// TestAPodInConflict has another value than the one that is injected.
func TestAPodInConflict(t *testing.T) {
	s := start(t)
	namespace(t, s, ways...)
	inject(t, s)
	const conflict = `{"containers": [{"name": "website", "image": "nginx", "env": [{"name": "DB_PORT", "value": "1"}]}]}`
	for _, test := range []struct{ way, env, warning string }{
		{"preset", "DB_PORT=1", "Conflict on pod preset"},
		{"converted", "DB_PORT=1", ""},
		{"policy", "DB_PORT=6379", ""},
		{"webhook", "DB_PORT=1 DB_PORT=6379", "hides previous definition"},
	} {
		t.Run(test.way, func(t *testing.T) { s.outcome(t, test.way, conflict).expect(t, test.env, test.warning, "") })
	}
}

// TestBrokenOrAway is about what a way does to pods when it cannot do its work.
func TestBrokenOrAway(t *testing.T) {
	s := start(t)
	for _, test := range []struct {
		name    string
		set     func(namespace string) (undo func())
		failure string
	}{
		{"a policy whose parameter is missing denies", func(in string) func() { return s.policyIn(t, in, "Fail", "Deny", "database") }, "no params found for policy binding with `Deny`"},
		{"a policy whose parameter is missing allows", func(in string) func() { return s.policyIn(t, in, "Fail", "Allow", "database") }, ""},
		{"a policy whose expression fails", func(in string) func() { return s.policyIn(t, in, "Fail", "Deny", "") }, "no such key: port"},
		{"a policy whose expression fails and is ignored", func(in string) func() { return s.policyIn(t, in, "Ignore", "Deny", "") }, ""},
		{"a webhook that is away", func(in string) func() {
			return webhook(t, s, in, in, "DB_PORT", registration.Fail).Close
		}, "connection refused"},
		{"a webhook that is away and is ignored", func(in string) func() { return webhook(t, s, in, in, "DB_PORT", registration.Ignore).Close }, ""},
		{"a webhook that hangs", func(in string) func() {
			h := webhook(t, s, in, in, "DB_PORT", registration.Fail)
			return func() { h.hangs.Store(true) }
		}, "context deadline exceeded"},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := strings.ReplaceAll(strings.ReplaceAll(test.name, " ", "-"), "a-", "")
			namespace(t, s, in)
			breakIt := test.set(in)
			await(t, "the injection", func(context.Context) bool { return s.outcome(t, in, plain).env != "" })
			breakIt()
			// Informers, too, must see what broke.
			await(t, "the failure", func(context.Context) bool { return s.outcome(t, in, plain).env == "" })
			begun := time.Now()
			s.outcome(t, in, plain).expect(t, "", "", test.failure)
			t.Logf("the creation took %v", time.Since(begun).Round(time.Millisecond))
		})
	}
}

// policyIn has the policy in force in a namespace. What it returns takes the parameter away or, where there
// is no name of one, the value in it.
func (s *server) policyIn(t *testing.T, namespace, failure, notFound, remove string) func() {
	t.Helper()
	apply(t, s, parameter, namespace)
	apply(t, s, policy(namespace, namespace, failure, notFound), "")
	maps := s.client.CoreV1().ConfigMaps(namespace)
	return func() {
		t.Helper()
		var err error
		if remove != "" {
			err = maps.Delete(t.Context(), remove, metav1.DeleteOptions{})
		} else {
			parameter, getErr := maps.Get(t.Context(), "database", metav1.GetOptions{})
			if err = getErr; err == nil {
				parameter.Data = map[string]string{"other": ""}
				_, err = maps.Update(t.Context(), parameter, metav1.UpdateOptions{})
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestOrderOfSeveral makes two of each way, of which the second would come first by its name.
func TestOrderOfSeveral(t *testing.T) {
	s := start(t)
	namespace(t, s, "preset", "policy", "webhook")
	apply(t, s, parameter, "policy")
	for _, name := range []string{"B", "A"} {
		apply(t, s, fmt.Sprintf(`{"apiVersion": "settings.k8s.io/v1alpha1", "kind": "PodPreset", "metadata": {"name": %q},
			"spec": {"selector": {"matchLabels": {"role": "frontend"}}, "env": [{"name": %q, "value": "6379"}]}}`, strings.ToLower(name), name), "preset")
		apply(t, s, strings.ReplaceAll(policy(strings.ToLower(name), "policy", "Fail", "Deny"), "DB_PORT", name), "")
		webhook(t, s, strings.ToLower(name), "webhook", name, registration.Fail)
		time.Sleep(1100 * time.Millisecond) // times of creation are whole seconds
	}
	for way, want := range map[string]string{"preset": "B=6379 A=6379", "webhook": "A=6379 B=6379"} {
		await(t, way, func(context.Context) bool { return s.outcome(t, way, plain).env == want })
	}
	// No order is promised.
	await(t, "both policies", func(context.Context) bool { return len(strings.Fields(s.outcome(t, "policy", plain).env)) == 2 })
	t.Logf("policies: %s", s.outcome(t, "policy", plain).env)
}
