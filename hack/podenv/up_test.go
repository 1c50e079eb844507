package main

import (
	"strings"
	"testing"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/nodeimage"
	"podenv.dev/hack/internal/pipeline"
)

func TestUpRecommendsNothingThatTheReleaseLacks(t *testing.T) {
	for _, stock := range []bool{false, true} {
		var out strings.Builder
		a := &app{out: &out, name: "other"}
		r := &build.Result{Version: "v1.33.13", Binaries: map[string]string{"kubectl": "/bin/kubectl"}}
		a.printNextSteps(&pipeline.Pipeline{Stock: stock}, &pipeline.Result{Parts: nodeimage.Parts{Build: r}}, &cluster.Cluster{})
		if explains := strings.Contains(out.String(), "explain pod.spec.containers.env.valueFrom.fileKeyRef"); explains == stock {
			t.Errorf("stock: %t, printed\n%s", stock, out.String())
		}
		for _, want := range []string{"/bin/kubectl --context kind-", "get pods --all-namespaces", "make down NAME=other"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("did not print %q:\n%s", want, out.String())
			}
		}
	}
}

func TestAKeptClusterStays(t *testing.T) {
	if err := (&app{name: "other", keep: true}).remove(t.Context(), nil); err != nil { // without a reporter, down would panic
		t.Error(err)
	}
}
