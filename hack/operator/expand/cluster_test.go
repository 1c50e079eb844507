package expand

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func service(namespace, name, ip string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func shopCluster() *fake.Clientset {
	return clusterOf(
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}, Data: map[string]string{"HOST": "example.com", "REF": "$(HOST)"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}, Data: map[string][]byte{"PASSWORD": []byte("hunter2"), "EMPTY": {}}},
		service("shop", "git", "10.0.0.1"), service("shop", "headless", "None"), service("other", "far", "10.0.0.3"),
		service("default", "kubernetes", "10.96.0.1"),
	)
}

// withoutServices keeps the lines about variables that are not services' own.
func withoutServices(lines []string) []string {
	var kept []string
	for _, line := range lines {
		if !strings.HasPrefix(line, "KUBERNETES_") && !strings.HasPrefix(line, "GIT_") {
			kept = append(kept, line)
		}
	}
	return kept
}

func TestEnvWithACluster(t *testing.T) {
	for _, tc := range []struct {
		name     string
		lines    []string
		want     []string
		findings []string
	}{
		{
			name:  "a variable of a ConfigMap can be referred to, and is not expanded itself",
			lines: []string{`env: [{name: A, valueFrom: {configMapKeyRef: {name: app, key: REF}}}, {name: B, value: "<$(A)>"}]`},
			want:  []string{"A=$(HOST)", "B=<$(HOST)>"},
		},
		{
			name:  "a Secret is masked, also where it is referred to",
			lines: []string{`envFrom: [{secretRef: {name: db}}]`, `env: [{name: URL, value: "u:$(PASSWORD)@h$(EMPTY)"}]`},
			want:  []string{"EMPTY=", "PASSWORD=***", "URL=u:***@h"},
		},
		{
			name:  "env comes over envFrom, and a later envFrom over an earlier",
			lines: []string{`envFrom: [{prefix: P_, configMapRef: {name: app}}, {configMapRef: {name: app}}]`, `env: [{name: HOST, value: "other.$(HOST)"}]`},
			want:  []string{"P_HOST=example.com", "P_REF=$(HOST)", "REF=$(HOST)", "HOST=other.example.com"},
		},
		{
			name:  "services of the pod's namespace",
			lines: []string{`env: [{name: URL, value: "$(GIT_SERVICE_HOST):$(GIT_SERVICE_PORT) $(KUBERNETES_SERVICE_HOST)"}, {name: NOT, value: "$(FAR_SERVICE_HOST)"}]`},
			want:  []string{"URL=10.0.0.1:80 10.96.0.1", "NOT=$(FAR_SERVICE_HOST)", "unexpanded FAR_SERVICE_HOST not_declared"},
		},
		{
			name:  "a container's variable over a service's",
			lines: []string{`env: [{name: GIT_SERVICE_HOST, value: mine}, {name: URL, value: "$(GIT_SERVICE_HOST)"}]`},
			want:  []string{"shadows GIT_SERVICE_HOST", "URL=mine"},
		},
		{
			name: "what is missing keeps the container from starting",
			lines: []string{`env: [{name: A, valueFrom: {configMapKeyRef: {name: app, key: none}}}, {name: B, valueFrom: {secretKeyRef: {name: none, key: k}}}]`,
				`envFrom: [{configMapRef: {name: none}}]`},
			want:     []string{"A=<unknown A>", "fails A", "B=<unknown B>", "fails B"},
			findings: []string{"fails"},
		},
		{
			name: "what is missing and optional is not set, and a reference to it stays",
			lines: []string{`env: [{name: A, valueFrom: {configMapKeyRef: {name: app, key: none, optional: true}}}, {name: B, value: "$(A)"}]`,
				`envFrom: [{secretRef: {name: none, optional: true}}]`},
			want:     []string{"B=$(A)", "unexpanded A optional_unset"},
			findings: []string{"unset", "unset A"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := container(t, shopCluster(), tc.lines...)
			if diff := cmp.Diff(tc.want, withoutServices(c.env())); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			if diff := cmp.Diff(tc.findings, brief(c.Findings)); diff != "" {
				t.Errorf("findings of the container: want -, got +:\n%s", diff)
			}
		})
	}
}

func TestServiceLinksTurnedOffLeaveTheAPIServer(t *testing.T) {
	manifest := podWith(`args: ["$(GIT_SERVICE_HOST)", "$(KUBERNETES_SERVICE_HOST)"]`) + "  enableServiceLinks: false\n"
	for name, want := range map[string]string{"with": "10.96.0.1", "without": "<unknown KUBERNETES_SERVICE_HOST>"} {
		t.Run(name+" a cluster", func(t *testing.T) {
			var c Container
			if name == "with" {
				c = pods(t, manifest, shopCluster())[0].Containers[0]
			} else {
				c = pods(t, manifest, nil)[0].Containers[0]
			}
			if c.Args[0].Value != "$(GIT_SERVICE_HOST)" || c.Args[1].Value != want {
				t.Errorf("got %+v", c.Args)
			}
		})
	}
}

func TestAServiceNamedAsTheAPIServersReplacesItWhole(t *testing.T) {
	own := service("shop", "kubernetes", "10.0.0.9")
	own.Spec.Ports[0].Port = 6443
	got := map[string]string{}
	for _, v := range pods(t, podWith(), clusterOf(own, service("default", "kubernetes", "10.96.0.1")))[0].Containers[0].Env {
		got[v.Name] = v.Value
	}
	if _, ok := got["KUBERNETES_PORT_80_TCP"]; ok || got["KUBERNETES_SERVICE_HOST"] != "10.0.0.9" {
		t.Errorf("got %v", got)
	}
	headless := service("shop", "kubernetes", "None")
	for _, v := range pods(t, podWith(), clusterOf(headless, service("default", "kubernetes", "10.96.0.1")))[0].Containers[0].Env {
		if v.Name == "KUBERNETES_SERVICE_HOST" && v.Value != "10.96.0.1" {
			t.Errorf("a headless service has no variables to replace others with; got %+v", v)
		}
	}
}

func TestKeysThatOnlyTheRelaxedGateMakesVariablesOf(t *testing.T) {
	client := clusterOf(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}, Data: map[string]string{"1A": "a", "B": "b"}})
	on, off := true, false
	for name, tc := range map[string]struct {
		gate     *bool
		env      []string
		findings []string
	}{
		"on":        {&on, []string{"1A=a", "B=b", "C=a"}, nil},
		"off":       {&off, []string{"B=b", "C=$(1A)", "unexpanded 1A not_declared"}, []string{"unset"}},
		"not known": {nil, []string{"1A=<unknown 1A>", "unknown 1A", "B=b", "C=<unknown 1A>", "unknown 1A"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := read(t, podWith(`envFrom: [{configMapRef: {name: app}}]`, `env: [{name: C, value: "$(1A)"}]`))
			got, err := Pods(t.Context(), m, Options{Namespace: "shop", Client: client, RelaxedNames: tc.gate})
			if err != nil {
				t.Fatal(err)
			}
			c := got[0].Containers[0]
			if !cmp.Equal(tc.env, c.env()) || !cmp.Equal(tc.findings, brief(c.Findings)) {
				t.Errorf("got %q, %q", c.env(), brief(c.Findings))
			}
		})
	}
}

func TestSecretsAreShownIfAskedFor(t *testing.T) {
	m := read(t, podWith(`env: [{name: A, valueFrom: {secretKeyRef: {name: db, key: PASSWORD}}}]`))
	got, err := Pods(t.Context(), m, Options{Namespace: "shop", Client: shopCluster(), ShowSecrets: true})
	if err != nil || got[0].Containers[0].Env[0].Value != "hunter2" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestTheManifestsOwnObjectsComeBeforeTheClusters(t *testing.T) {
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {HOST: new}\n---\n" +
		podWith(`env: [{name: A, valueFrom: {configMapKeyRef: {name: app, key: HOST}}}]`)
	if got := withoutServices(pods(t, manifest, shopCluster())[0].Containers[0].env()); !cmp.Equal(got, []string{"A=new"}) {
		t.Errorf("got %q", got)
	}
}

func TestAnObjectIsReadOnce(t *testing.T) {
	client := shopCluster()
	container(t, client, `envFrom: [{configMapRef: {name: app}}, {secretRef: {name: none, optional: true}}]`,
		`env: [{name: A, valueFrom: {configMapKeyRef: {name: app, key: HOST}}}, {name: B, valueFrom: {secretKeyRef: {name: none, key: k, optional: true}}}]`)
	reads := map[string]int{}
	for _, action := range client.Actions() {
		if get, ok := action.(clienttesting.GetAction); ok {
			reads[get.GetResource().Resource+" "+get.GetName()]++
		}
	}
	if diff := cmp.Diff(map[string]int{"configmaps app": 1, "secrets none": 1, "services kubernetes": 1}, reads); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

// Who may not read Secrets still wants to know about the rest.
func TestWhatMayNotBeReadIsUnknown(t *testing.T) {
	client := shopCluster()
	for _, resource := range []string{"secrets", "services"} {
		client.PrependReactor("*", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
		})
	}
	c := container(t, client, `env: [{name: A, valueFrom: {secretKeyRef: {name: db, key: k}}}, {name: B, value: "$(GIT_SERVICE_HOST)"}, {name: C, valueFrom: {configMapKeyRef: {name: app, key: HOST}}}]`)
	want := []string{"A=<unknown A>", "unknown A", "B=<unknown GIT_SERVICE_HOST>", "unknown GIT_SERVICE_HOST", "C=example.com"}
	if diff := cmp.Diff(want, c.env()); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestTheAPIServersServiceMayBeTheOnlyOneThatMayNotBeRead(t *testing.T) {
	client := shopCluster()
	client.PrependReactor("get", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "kubernetes", errors.New("no"))
	})
	c := container(t, client, `args: ["$(KUBERNETES_SERVICE_HOST)", "$(NONE_SERVICE_HOST)"]`)
	if got := append(brief(c.Args[0].Findings), brief(c.Args[1].Findings)...); !cmp.Equal(got, []string{"unknown KUBERNETES_SERVICE_HOST", "unexpanded NONE_SERVICE_HOST not_declared"}) {
		t.Errorf("got %q", got)
	}
}

func TestAClusterThatDoesNotAnswerIsAnError(t *testing.T) {
	client := shopCluster()
	client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	m := read(t, podWith(`envFrom: [{configMapRef: {name: app}}]`))
	if _, err := Pods(t.Context(), m, Options{Namespace: "shop", Client: client}); err == nil || !strings.Contains(err.Error(), "reading ConfigMap shop/app: connection refused") {
		t.Errorf("got %v", err)
	}
}
