package pod

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	api "k8s.io/kubernetes/pkg/apis/core"
	apivalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

// A newer API server accepts paths and keys that this one does not. An object with
// such a one can still be updated, each where it is stored; no other gets in.
func TestStoredPathsAndKeysMayStay(t *testing.T) {
	from := func(path, key string) *api.PodSpec {
		return &api.PodSpec{
			Volumes: []api.Volume{{Name: "config", VolumeSource: api.VolumeSource{EmptyDir: &api.EmptyDirVolumeSource{}}}},
			Containers: []api.Container{{Env: []api.EnvVar{{Name: "A", ValueFrom: &api.EnvVarSource{
				FileKeyRef: &api.FileKeySelector{VolumeName: "config", Path: path, Key: key},
			}}}}},
		}
	}
	long := strings.Repeat("x", 5000)
	stored := map[string]*api.PodSpec{
		"an absolute path":        from("/config.env", "KEY"),
		"a long path":             from(long, "KEY"),
		"a slash at the end":      from("config.env/", "KEY"),
		"a step back":             from("../config.env", "KEY"),
		"a long key":              from("config.env", long),
		"a key that is no name":   from("config.env", "A=B"),
		"a key of a bound itself": from("config.env", long[:129]),
	}
	for name, spec := range stored {
		for oldName, old := range stored {
			opts := GetValidationOptionsFromPodSpecAndMeta(spec, old, nil, nil)
			errs := apivalidation.ValidateFileKeyRefs(spec, field.NewPath("spec"), opts)
			if allowed := len(errs) == 0; allowed != (name == oldName) {
				t.Errorf("%s, where %s is stored: got %v", name, oldName, errs)
			}
		}
		// Whatever else is stored, before it and after it.
		several := from("good.env", "GOOD")
		env := append(several.Containers[0].Env, spec.Containers[0].Env[0])
		several.Containers[0].Env = append(env, several.Containers[0].Env[0])
		opts := GetValidationOptionsFromPodSpecAndMeta(spec, several, nil, nil)
		if errs := apivalidation.ValidateFileKeyRefs(spec, field.NewPath("spec"), opts); len(errs) > 0 {
			t.Errorf("%s, stored among others: got %v", name, errs)
		}
		created := GetValidationOptionsFromPodSpecAndMeta(spec, nil, nil, nil)
		if errs := apivalidation.ValidateFileKeyRefs(spec, field.NewPath("spec"), created); len(errs) == 0 {
			t.Errorf("%s: want an error for a new object", name)
		}
	}
}
