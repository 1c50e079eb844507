package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/layout"
)

// newClusterAPI returns the API of a new cluster, with its built-in objects.
func newClusterAPI() apiServer {
	list := func(verbs ...string) metav1.APIResource {
		return metav1.APIResource{Namespaced: true, Verbs: append(verbs, "list")}
	}
	resource := func(name string, r metav1.APIResource) metav1.APIResource {
		r.Name, r.SingularName = name+"s", name
		return r
	}
	return apiServer{
		"/api/v1/namespaces": objects("default", "kube-node-lease", "kube-public", "kube-system", "local-path-storage"),
		"/api":               metav1.APIVersions{Versions: []string{"v1"}},
		"/apis": metav1.APIGroupList{Groups: []metav1.APIGroup{{
			Name: "settings.k8s.io", PreferredVersion: metav1.GroupVersionForDiscovery{GroupVersion: "settings.k8s.io/v1alpha1", Version: "v1alpha1"},
			Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "settings.k8s.io/v1alpha1", Version: "v1alpha1"}},
		}}},
		"/api/v1": metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
			resource("configmap", list("create")), resource("event", list("create")), resource("pod", list("create")),
			resource("service", list("create")), resource("binding", metav1.APIResource{Namespaced: true, Verbs: []string{"create"}}),
		}},
		"/apis/settings.k8s.io/v1alpha1": metav1.APIResourceList{GroupVersion: "settings.k8s.io/v1alpha1", APIResources: []metav1.APIResource{
			resource("podpreset", list("create")),
		}},
		"/api/v1/namespaces/default/configmaps":                        objects("kube-root-ca.crt"),
		"/api/v1/namespaces/default/pods":                              objects(),
		"/api/v1/namespaces/default/services":                          objects("kubernetes"),
		"/api/v1/namespaces/default/events":                            objects("something-happened"),
		"/apis/settings.k8s.io/v1alpha1/namespaces/default/podpresets": objects(),
	}
}

func objects(names ...string) metav1.PartialObjectMetadataList {
	list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	for _, name := range names {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return list
}

// fakeCluster adds a complete cluster whose API server is api, or does not answer if api is
// nil.
func fakeCluster(t *testing.T, api apiServer) (fakeDocker, layout.Layout, *engine.Engine) {
	t.Helper()
	f, l, e := newFakeDocker(t)
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	if api == nil {
		server.Close()
	}
	f.addCluster(t, &record{NodeImage: "podenv-node", ImageID: "sha256:1111", Workers: 1, Checkout: l.Root})
	dir := open(l, e, "podenv").dir
	config := fmt.Sprintf(`{clusters: [{name: a, cluster: {server: %q}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}`, server.URL)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kubeconfig"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return f, l, e
}

func TestAClusterIsRecreatedOnlyIfNothingRunsOnItOrARecreationIsAskedFor(t *testing.T) {
	with := func(path string, answer any) apiServer {
		api := newClusterAPI()
		api[path] = answer
		return api
	}
	leaving := objects("leaving")
	leaving.Items[0].DeletionTimestamp = &metav1.Time{Time: time.Now()}
	tests := map[string]struct {
		api      apiServer
		recreate bool
		keeps    string // what the error says would be lost; empty: it is recreated
	}{
		"one that was just made":                      {api: newClusterAPI()},
		"one with a pod that is being deleted":        {api: with("/api/v1/namespaces/default/pods", leaving)},
		"one with a pod":                              {api: with("/api/v1/namespaces/default/pods", objects("app")), keeps: "pod app in namespace default"},
		"one with a namespace":                        {api: with("/api/v1/namespaces", objects("default", "shop")), keeps: "namespace shop"},
		"one with an object of another API group":     {api: with("/apis/settings.k8s.io/v1alpha1/namespaces/default/podpresets", objects("db")), keeps: "podpreset db"},
		"one with a pod, where a recreation is asked": {api: with("/api/v1/namespaces/default/pods", objects("app")), recreate: true},
		"one whose API server does not answer":        {keeps: "what the API server does not list"},
		"that one, where a recreation is asked":       {recreate: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, l, e := fakeCluster(t, test.api)
			f.write(t, "fail/run", "no nodes are made in this test")
			cfg := podenvConfig()
			cfg.Workers, cfg.Recreate = 2, test.recreate
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a deadline only
			defer cancel()
			_, err := Create(ctx, l, e, cfg, nil)
			kept := len(f.names(t, "containers")) == 2
			if kept != (test.keeps != "") || errors.Is(err, ErrInUse) != kept {
				t.Fatalf("the nodes are kept: %t, error %v", kept, err)
			}
			if !kept {
				return
			}
			for _, want := range []string{"it has 1 workers, not 2", test.keeps, "`podenv up --recreate`", "--name"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not have %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestStoppedNodesAreStarted(t *testing.T) {
	f, l, e := fakeCluster(t, newClusterAPI())
	worker, err := f.container("podenv-worker")
	if err != nil {
		t.Fatal(err)
	}
	worker.Stopped = true
	f.add(t, worker)
	c := open(l, e, "podenv")
	c.record = c.docker.readRecord(t.Context(), "podenv")
	found, err := c.docker.containers(t.Context(), "podenv")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // the fake has no kubeconfig to export
	defer cancel()
	if err := c.reuse(ctx, found, c.record, nil, nil); err == nil {
		t.Fatal("a fake cluster serves")
	}
	if worker, err = f.container("podenv-worker"); err != nil || worker.Stopped {
		t.Errorf("the worker is stopped: %t, %v", worker.Stopped, err)
	}
	if nodes := f.names(t, "containers"); len(nodes) != 2 {
		t.Errorf("nodes: %q", nodes)
	}
}

func TestTheLockOfAClusterIsSharedByCheckouts(t *testing.T) {
	_, l, e := newFakeDocker(t)
	unlock, err := open(l, e, "podenv").Lock(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	other := open(layout.Layout{Root: t.TempDir()}, e, "podenv")
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := other.Lock(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("another checkout got the lock: %v", err)
	}
	unlock()
	if unlock, err = other.Lock(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	unlock()
}
