package validation

import (
	"testing"

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
	testStatefulSetTemplates(t, corevalidation.PodValidationOptions{EnvFilesEnabled: true}, []templateCase{
		{name: "a file in an emptyDir", tweaks: []tweakStatefulSet{env("A", "config", "config.env")}},
		{name: "a volume that no pod has", tweaks: []tweakStatefulSet{env("A", "missing", "config.env")}, want: []string{firstContainer + "env[0].valueFrom.fileKeyRef.volumeName"}},
		{name: "the volume of a claim for an env file", tweaks: []tweakStatefulSet{env("A", "data", "config.env"), addClaim("data")}, want: []string{firstContainer + "env[0].valueFrom.fileKeyRef.volumeName"}},
		{name: "a path that ends in a slash", tweaks: []tweakStatefulSet{env("A", "config", "config.env/")}, want: []string{firstContainer + "env[0].valueFrom.fileKeyRef.path"}},
		{name: "an invalid name of a variable", tweaks: []tweakStatefulSet{env("A=B", "config", "config.env")}, want: []string{firstContainer + "env[0].name"}},
		{name: "a container mounts what it consumes", tweaks: []tweakStatefulSet{env("A", "config", "config.env"), addMount("config")}, want: []string{firstContainer + "volumeMounts[0].name"}},
	})
}
