package validation

import (
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podtest "k8s.io/kubernetes/pkg/api/pod/testing"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

type tweakStatefulSet func(*apps.StatefulSetSpec)

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

// inSecondContainer makes tweak, which changes the first container, in one behind a container that is as it was.
func inSecondContainer(tweak tweakStatefulSet) tweakStatefulSet {
	return func(spec *apps.StatefulSetSpec) {
		first := spec.Template.Spec.Containers[0]
		tweak(spec)
		spec.Template.Spec.Containers = []core.Container{first, spec.Template.Spec.Containers[0]}
	}
}

func TestWarningsForAStatefulSetOfWhichNoPodCanBeMade(t *testing.T) {
	testCases := []struct {
		name  string
		tweak tweakStatefulSet
		want  string // the field
	}{
		{name: "a valid one", tweak: func(*apps.StatefulSetSpec) {}},
		{name: "the volume of a claim is mounted", tweak: func(spec *apps.StatefulSetSpec) { addMount("data")(spec); addClaim("data")(spec) }},
		{name: "a claim takes the place of the template's volume", tweak: func(spec *apps.StatefulSetSpec) { addMount("config")(spec); addClaim("config")(spec) }},
		{name: "an invalid name of a variable", tweak: func(spec *apps.StatefulSetSpec) {
			spec.Template.Spec.Containers[0].Env = []core.EnvVar{{Name: "A=B", Value: "value"}}
		}, want: firstContainer + "env[0].name"},
		{name: "a source of variables without a name", tweak: func(spec *apps.StatefulSetSpec) {
			spec.Template.Spec.Containers[0].EnvFrom = []core.EnvFromSource{{ConfigMapRef: &core.ConfigMapEnvSource{}}}
		}, want: firstContainer + "envFrom[0].configMapRef.name"},
		{name: "a mount of a volume that only admission can add", tweak: addMount("missing"), want: firstContainer + "volumeMounts[0].name"},
		{name: "such a mount in the second container", tweak: inSecondContainer(addMount("missing")), want: "spec.template.spec.containers[1].volumeMounts[0].name"},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			set := makeStatefulSet(tc.tweak)
			// As decoding may leave it: with room behind the last volume.
			spare := append(set.Spec.Template.Spec.Volumes, core.Volume{Name: "spare"})
			set.Spec.Template.Spec.Volumes = spare[:len(spare)-1]
			before := set.DeepCopy()
			got := WarningsForStatefulSetPodSpec(&set.Spec, field.NewPath("spec"), corevalidation.PodValidationOptions{})
			if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], tc.want+": ")) {
				t.Errorf("want a warning about %q, got %q", tc.want, got)
			}
			if !reflect.DeepEqual(before, set) || spare[len(spare)-1].Name != "spare" {
				t.Error("the StatefulSet was changed")
			}
		})
	}
}
