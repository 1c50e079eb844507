package validation

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

func TestEnvFilesOfAStatefulSetTemplateAreValidatedAsThoseOfItsPods(t *testing.T) {
	env := func(name, volume, path string) tweakStatefulSet {
		return func(spec *apps.StatefulSetSpec) {
			c := &spec.Template.Spec.Containers[0]
			c.Env = append(c.Env, core.EnvVar{Name: name, ValueFrom: &core.EnvVarSource{
				FileKeyRef: &core.FileKeySelector{VolumeName: volume, Path: path, Key: "KEY"},
			}})
		}
	}
	opts := corevalidation.PodValidationOptions{EnvFilesEnabled: true}
	testCases := []struct {
		name   string
		tweaks []tweakStatefulSet
		want   []string // fields, on create and on update of a valid one
	}{
		{name: "a file in an emptyDir", tweaks: []tweakStatefulSet{env("A", "config", "config.env")}},
		{name: "a volume that no pod has", tweaks: []tweakStatefulSet{env("A", "missing", "config.env")}, want: []string{firstContainer + "env[0].valueFrom.fileKeyRef.volumeName"}},
		{name: "the volume of a claim for an env file", tweaks: []tweakStatefulSet{env("A", "data", "config.env"), addClaim("data")}, want: []string{firstContainer + "env[0].valueFrom.fileKeyRef.volumeName"}},
		{name: "a claim takes the place of the emptyDir", tweaks: []tweakStatefulSet{env("A", "config", "config.env"), addClaim("config"), addClaim("config")}, want: []string{firstContainer + "env[0].valueFrom.fileKeyRef.volumeName"}},
		{name: "a path that ends in a slash", tweaks: []tweakStatefulSet{env("A", "config", "config.env/")}, want: []string{firstContainer + "env[0].valueFrom.fileKeyRef.path"}},
		{name: "an invalid name of a variable, which is no error of a template", tweaks: []tweakStatefulSet{env("A=B", "config", "config.env")}},
		{name: "another source that no pod can have, which is no error of a template", tweaks: []tweakStatefulSet{func(spec *apps.StatefulSetSpec) {
			spec.Template.Spec.Containers[0].Env = []core.EnvVar{{Name: "LITERAL", Value: "value"}, {Name: "A", ValueFrom: &core.EnvVarSource{FieldRef: &core.ObjectFieldSelector{FieldPath: "none"}}}}
		}}},
		{name: "no path, in the second container", tweaks: []tweakStatefulSet{inSecondContainer(env("A", "config", ""))}, want: []string{"spec.template.spec.containers[1].env[0].valueFrom.fileKeyRef.path"}},
		{name: "a file and a value", tweaks: []tweakStatefulSet{env("A", "config", "config.env"), func(spec *apps.StatefulSetSpec) {
			spec.Template.Spec.Containers[0].Env[0].Value = "value"
		}}, want: []string{firstContainer + "env[0].valueFrom"}},
		{name: "a container mounts what it consumes", tweaks: []tweakStatefulSet{env("A", "config", "config.env"), addMount("config")}, want: []string{firstContainer + "volumeMounts[0].name"}},
	}
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
			check("create", ValidateStatefulSetFileKeyRefs(&set.Spec, path, opts), tc.want)
			check("update of a valid one", ValidateStatefulSetFileKeyRefsUpdate(&set.Spec, &valid.Spec, path, opts), tc.want)
			check("update of one that is as it was", ValidateStatefulSetFileKeyRefsUpdate(&scaled.Spec, &set.Spec, path, opts), nil)
			stored := opts
			stored.AllowEnvFileMounts = true
			var invalid []string // beside mounts
			if !strings.HasSuffix(strings.Join(tc.want, ""), "volumeMounts[0].name") {
				invalid = tc.want
			}
			check("create where such mounts are stored", ValidateStatefulSetFileKeyRefs(&set.Spec, path, stored), invalid)
			check("update to a valid one", ValidateStatefulSetFileKeyRefsUpdate(&valid.Spec, &set.Spec, path, opts), nil)
		})
	}
}

// TestUpdateLetsStandWhatTheOldTemplateHad has an old template with a volume that no pod has.
func TestUpdateLetsStandWhatTheOldTemplateHad(t *testing.T) {
	env := func(volume, path string) core.EnvVar {
		return core.EnvVar{Name: "A", ValueFrom: &core.EnvVarSource{FileKeyRef: &core.FileKeySelector{VolumeName: volume, Path: path, Key: "KEY"}}}
	}
	setEnv := func(env ...core.EnvVar) tweakStatefulSet {
		return func(spec *apps.StatefulSetSpec) { spec.Template.Spec.Containers[0].Env = env }
	}
	old := makeStatefulSet(setEnv(env("missing", "a.env")))
	env0, env1 := firstContainer+"env[0].valueFrom", firstContainer+"env[1].valueFrom"
	for _, tc := range []struct {
		name string
		new  tweakStatefulSet
		want []string
	}{
		{name: "behind another variable", new: setEnv(core.EnvVar{Name: "B"}, env("missing", "a.env"))},
		{name: "in another container", new: inSecondContainer(setEnv(env("missing", "a.env")))},
		{name: "another file of it", new: setEnv(env("missing", "a.env"), env("missing", "b.env"))},
		{name: "another volume that no pod has", new: setEnv(env("missing", "a.env"), env("gone", "a.env")), want: []string{env1 + ".fileKeyRef.volumeName"}},
		{name: "a step back", new: setEnv(env("missing", "a.env"), env("missing", "../a.env")), want: []string{env1 + ".fileKeyRef.path"}},
		{name: "no path", new: setEnv(env("missing", "")), want: []string{env0 + ".fileKeyRef.path"}},
		{name: "a value", new: func(spec *apps.StatefulSetSpec) {
			setEnv(env("missing", "a.env"))(spec)
			spec.Template.Spec.Containers[0].Env[0].Value = "value"
		}, want: []string{env0}},
		{name: "the volume becomes that of a claim", new: func(spec *apps.StatefulSetSpec) {
			setEnv(env("missing", "a.env"))(spec)
			addClaim("missing")(spec)
		}, want: []string{env0 + ".fileKeyRef.volumeName"}},
		{name: "a mount", new: func(spec *apps.StatefulSetSpec) {
			setEnv(env("missing", "a.env"))(spec)
			addMount("missing")(spec)
		}, want: []string{firstContainer + "volumeMounts[0].name"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := makeStatefulSet(tc.new)
			var got []string
			for _, err := range ValidateStatefulSetFileKeyRefsUpdate(&set.Spec, &old.Spec, field.NewPath("spec"), corevalidation.PodValidationOptions{EnvFilesEnabled: true}) {
				got = append(got, err.Field)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("want errors of fields %v, got %v", tc.want, got)
			}
		})
	}
}
