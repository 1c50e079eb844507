package validation

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podtest "k8s.io/kubernetes/pkg/api/pod/testing"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

type tweakStatefulSet func(*apps.StatefulSetSpec)

// templateCase is a pod template of a StatefulSet.
type templateCase struct {
	name   string
	tweaks []tweakStatefulSet
	want   []string // fields, on create and on update of a valid one
}

const firstContainer = "spec.template.spec.containers[0]."

func makeStatefulSet(tweaks ...tweakStatefulSet) *apps.StatefulSet {
	labels := map[string]string{"app": "db"}
	set := &apps.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "default", ResourceVersion: "1"},
		Spec: apps.StatefulSetSpec{
			Selector:            &metav1.LabelSelector{MatchLabels: labels},
			PodManagementPolicy: apps.OrderedReadyPodManagement,
			UpdateStrategy:      apps.StatefulSetUpdateStrategy{Type: apps.RollingUpdateStatefulSetStrategyType},
			Template: core.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       podtest.MakePodSpec(podtest.SetContainers(podtest.MakeContainer("app")), podtest.SetVolumes(podtest.MakeEmptyVolume("config"))),
			},
		},
	}
	for _, tweak := range tweaks {
		tweak(&set.Spec)
	}
	return set
}

func addMount(volume string) tweakStatefulSet {
	return func(spec *apps.StatefulSetSpec) {
		c := &spec.Template.Spec.Containers[0]
		c.VolumeMounts = append(c.VolumeMounts, core.VolumeMount{Name: volume, MountPath: "/" + volume})
	}
}

func addClaim(name string) tweakStatefulSet {
	return func(spec *apps.StatefulSetSpec) {
		spec.VolumeClaimTemplates = append(spec.VolumeClaimTemplates, core.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
}

func TestStatefulSetTemplateIsValidatedAsItsPods(t *testing.T) {
	testStatefulSetTemplates(t, corevalidation.PodValidationOptions{}, []templateCase{
		{name: "the volume of a claim is mounted", tweaks: []tweakStatefulSet{addMount("data"), addClaim("data")}},
		{name: "a claim takes the place of the template's volume", tweaks: []tweakStatefulSet{addMount("config"), addClaim("config")}},
		{name: "hostname and subdomain, which the controller sets", tweaks: []tweakStatefulSet{func(spec *apps.StatefulSetSpec) {
			spec.Template.Spec.Hostname, spec.Template.Spec.Subdomain = "Not_A_Label", "Not_A_Label"
		}}},
		{name: "an invalid name of a variable", tweaks: []tweakStatefulSet{func(spec *apps.StatefulSetSpec) {
			spec.Template.Spec.Containers[0].Env = []core.EnvVar{{Name: "A=B", Value: "value"}}
		}}, want: []string{firstContainer + "env[0].name"}},
		{name: "a mount of a volume that no pod has", tweaks: []tweakStatefulSet{addMount("missing")}, want: []string{firstContainer + "volumeMounts[0].name"}},
	})
}

func testStatefulSetTemplates(t *testing.T, opts corevalidation.PodValidationOptions, testCases []templateCase) {
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			valid, set := makeStatefulSet(), makeStatefulSet(tc.tweaks...)
			valid.Spec.VolumeClaimTemplates = set.Spec.VolumeClaimTemplates
			scaled := set.DeepCopy()
			scaled.Spec.Replicas++

			check := func(what string, errs field.ErrorList, want []string) {
				var got []string
				for _, err := range errs {
					got = append(got, err.Field)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s: want errors of fields %v, got %v", what, want, got)
				}
			}
			path := field.NewPath("spec")
			check("create", ValidateStatefulSetPodSpec(&set.Spec, path, opts), tc.want)
			check("update of a valid one", ValidateStatefulSetPodSpecUpdate(&set.Spec, &valid.Spec, path, opts), tc.want)
			check("update of one that is as it was", ValidateStatefulSetPodSpecUpdate(&scaled.Spec, &set.Spec, path, opts), nil)
			check("update to a valid one", ValidateStatefulSetPodSpecUpdate(&valid.Spec, &set.Spec, path, opts), nil)
		})
	}
}
