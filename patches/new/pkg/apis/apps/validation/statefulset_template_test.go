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

func TestStatefulSetTemplateIsValidatedAsItsPods(t *testing.T) {
	labels := map[string]string{"app": "db"}
	statefulSet := func(tweaks ...func(*apps.StatefulSetSpec)) *apps.StatefulSet {
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
	env := func(name, volume, path string) func(*apps.StatefulSetSpec) {
		return func(spec *apps.StatefulSetSpec) {
			c := &spec.Template.Spec.Containers[0]
			c.Env = append(c.Env, core.EnvVar{Name: name, ValueFrom: &core.EnvVarSource{
				FileKeyRef: &core.FileKeySelector{VolumeName: volume, Path: path, Key: "KEY"},
			}})
		}
	}
	mount := func(volume string) func(*apps.StatefulSetSpec) {
		return func(spec *apps.StatefulSetSpec) {
			c := &spec.Template.Spec.Containers[0]
			c.VolumeMounts = append(c.VolumeMounts, core.VolumeMount{Name: volume, MountPath: "/" + volume})
		}
	}
	claim := func(name string) func(*apps.StatefulSetSpec) {
		return func(spec *apps.StatefulSetSpec) {
			spec.VolumeClaimTemplates = append(spec.VolumeClaimTemplates, core.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	const prefix = "spec.template.spec.containers[0]."
	testCases := []struct {
		name string
		spec func(*apps.StatefulSetSpec)
		more func(*apps.StatefulSetSpec)
		want []string // fields, on create and on update of a valid one
	}{
		{name: "a file in an emptyDir", spec: env("A", "config", "config.env")},
		{name: "the volume of a claim is mounted", spec: mount("data"), more: claim("data")},
		{name: "a claim takes the place of the template's volume", spec: mount("config"), more: claim("config")},
		{name: "hostname and subdomain, which the controller sets", spec: func(spec *apps.StatefulSetSpec) {
			spec.Template.Spec.Hostname, spec.Template.Spec.Subdomain = "Not_A_Label", "Not_A_Label"
		}},
		{name: "a volume that no pod has", spec: env("A", "missing", "config.env"), want: []string{prefix + "env[0].valueFrom.fileKeyRef.volumeName"}},
		{name: "the volume of a claim for an env file", spec: env("A", "data", "config.env"), more: claim("data"), want: []string{prefix + "env[0].valueFrom.fileKeyRef.volumeName"}},
		{name: "a path that ends in a slash", spec: env("A", "config", "config.env/"), want: []string{prefix + "env[0].valueFrom.fileKeyRef.path"}},
		{name: "an invalid name of a variable", spec: env("A=B", "config", "config.env"), want: []string{prefix + "env[0].name"}},
		{name: "a container mounts what it consumes", spec: env("A", "config", "config.env"), more: mount("config"), want: []string{prefix + "volumeMounts[0].name"}},
		{name: "a mount of a volume that no pod has", spec: mount("missing"), want: []string{prefix + "volumeMounts[0].name"}},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			more := tc.more
			if more == nil {
				more = func(*apps.StatefulSetSpec) {}
			}
			valid, set := statefulSet(), statefulSet(tc.spec, more)
			valid.Spec.VolumeClaimTemplates = set.Spec.VolumeClaimTemplates
			opts := corevalidation.PodValidationOptions{EnvFilesEnabled: true}

			fields := func(errs field.ErrorList) (fields []string) {
				for _, err := range errs {
					fields = append(fields, err.Field)
				}
				return fields
			}
			if got := fields(ValidateStatefulSetPodSpec(&set.Spec, field.NewPath("spec"), opts)); !slices.Equal(got, tc.want) {
				t.Errorf("create: want errors of fields %v, got %v", tc.want, got)
			}
			if got := fields(ValidateStatefulSetPodSpecUpdate(&set.Spec, &valid.Spec, field.NewPath("spec"), opts)); !slices.Equal(got, tc.want) {
				t.Errorf("update of a valid one: want errors of fields %v, got %v", tc.want, got)
			}
			scaled := set.DeepCopy()
			scaled.Spec.Replicas++
			if got := fields(ValidateStatefulSetPodSpecUpdate(&scaled.Spec, &set.Spec, field.NewPath("spec"), opts)); len(got) != 0 {
				t.Errorf("update of one that is as it was: unexpected errors of fields %v", got)
			}
			if got := fields(ValidateStatefulSetPodSpecUpdate(&valid.Spec, &set.Spec, field.NewPath("spec"), opts)); len(got) != 0 {
				t.Errorf("update to a valid one: unexpected errors of fields %v", got)
			}
		})
	}
}
