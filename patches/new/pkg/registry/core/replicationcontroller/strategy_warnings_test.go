package replicationcontroller

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	podtest "k8s.io/kubernetes/pkg/api/pod/testing"
	api "k8s.io/kubernetes/pkg/apis/core"
)

func TestWarningsOnUpdate(t *testing.T) {
	withGracePeriod := func(generation, seconds int64) *api.ReplicationController {
		spec := podtest.MakePodSpec(podtest.SetTerminationGracePeriodSeconds(seconds))
		return &api.ReplicationController{
			ObjectMeta: metav1.ObjectMeta{Generation: generation},
			Spec:       api.ReplicationControllerSpec{Template: &api.PodTemplateSpec{Spec: spec}},
		}
	}
	const negative = "spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"

	testCases := []struct {
		name     string
		old, new *api.ReplicationController
		want     []string
	}{
		{name: "the new template is worth a warning", old: withGracePeriod(1, 30), new: withGracePeriod(2, -1), want: []string{negative}},
		{name: "the old template was worth a warning", old: withGracePeriod(1, -1), new: withGracePeriod(2, 30)},
		{name: "nothing changed", old: withGracePeriod(1, -1), new: withGracePeriod(1, -1)},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			if got := Strategy.WarningsOnUpdate(genericapirequest.NewDefaultContext(), tc.new, tc.old); !slices.Equal(got, tc.want) {
				t.Errorf("want warnings %q, got %q", tc.want, got)
			}
		})
	}
}
