package pod_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	podtest "k8s.io/kubernetes/pkg/api/pod/testing"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
	"k8s.io/kubernetes/pkg/registry/core/pod"
)

// envVarNames are the names that an object has of its own.
var envVarNames = map[string][]string{
	"absent":        nil,
	"strict":        {"my.env-NAME_1"},
	"relaxed":       {"Logging:LogLevel:Default"},
	"other relaxed": {"1ST"},
	"both relaxed":  {"Logging:LogLevel:Default", "1ST"},
	"invalid":       {"A=B"},
}

// envVarNameRules are the results of writes: refused are those of the new
// object's names that are not accepted.
var envVarNameRules = []struct {
	name    string
	relaxed bool
	old     string // empty: create
	refused []string
}{
	{name: "gate on, create", relaxed: true, refused: []string{"invalid"}},
	{name: "gate on, update of an object without names", relaxed: true, old: "absent", refused: []string{"invalid"}},
	{name: "gate on, update of a strict object", relaxed: true, old: "strict", refused: []string{"invalid"}},
	{name: "gate on, update of a relaxed object", relaxed: true, old: "relaxed", refused: []string{"invalid"}},

	{name: "gate off, create", refused: []string{"relaxed", "other relaxed", "both relaxed", "invalid"}},
	{name: "gate off, update of an object without names", old: "absent", refused: []string{"relaxed", "other relaxed", "both relaxed", "invalid"}},
	{name: "gate off, update of a strict object", old: "strict", refused: []string{"relaxed", "other relaxed", "both relaxed", "invalid"}},
	{name: "gate off, update of a relaxed object", old: "relaxed", refused: []string{"invalid"}},
	{name: "gate off, update of an object that has two relaxed names", old: "both relaxed", refused: []string{"invalid"}},
}

// envVarNamePlaces are where a pod spec carries the name of a variable or a
// prefix of names. Each returns the field of the error, below the pod spec.
var envVarNamePlaces = map[string]func(*api.PodSpec, string) string{
	"variable": func(spec *api.PodSpec, name string) string {
		spec.Containers[0].Env = append(spec.Containers[0].Env, api.EnvVar{Name: name})
		return ".containers[0].env[0].name"
	},
	"variable of an init container": func(spec *api.PodSpec, name string) string {
		spec.InitContainers[0].Env = append(spec.InitContainers[0].Env, api.EnvVar{Name: name})
		return ".initContainers[0].env[0].name"
	},
	"prefix": func(spec *api.PodSpec, name string) string {
		spec.Containers[0].EnvFrom = append(spec.Containers[0].EnvFrom, envFromSource(name))
		return ".containers[0].envFrom[1].prefix"
	},
}

func envFromSource(prefix string) api.EnvFromSource {
	return api.EnvFromSource{Prefix: prefix, ConfigMapRef: &api.ConfigMapEnvSource{LocalObjectReference: api.LocalObjectReference{Name: "source"}}}
}

// TestRelaxedEnvVarNames writes every kind of object that carries a pod spec
// through its strategy, with the gate on and off: on create strict validation
// is for the gate off, on update for the gate off and an old object that passes
// it, whichever of its names the new object keeps, and wherever they stand.
func TestRelaxedEnvVarNames(t *testing.T) {
	for kindName, k := range kinds {
		podSpec := func(names, place string) (api.PodSpec, string) {
			spec := podtest.MakePodSpec(podtest.SetContainers(podtest.MakeContainer("app")))
			spec.InitContainers = []api.Container{podtest.MakeContainer("setup")}
			spec.RestartPolicy = k.restartPolicy
			// No prefix is not a name that strict validation refuses.
			spec.Containers[0].EnvFrom = []api.EnvFromSource{envFromSource("")}
			path := ""
			for i, name := range envVarNames[names] {
				if at := envVarNamePlaces[place](&spec, name); i == 0 {
					path = k.path + at
				}
			}
			return spec, path
		}
		stored := func(spec api.PodSpec) runtime.Object {
			return k.object(
				metav1.ObjectMeta{Name: "name", Namespace: metav1.NamespaceDefault, ResourceVersion: "1", Generation: 1},
				api.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
			)
		}
		for _, rule := range envVarNameRules {
			t.Run(kindName+"/"+rule.name, func(t *testing.T) {
				featurestest.SetGate(t, features.RelaxedEnvironmentVariableValidation, rule.relaxed)
				ctx := genericapirequest.NewDefaultContext()
				for newNames := range envVarNames {
					for newPlace := range envVarNamePlaces {
						for oldPlace := range envVarNamePlaces {
							spec, path := podSpec(newNames, newPlace)
							obj := stored(spec)
							var errs field.ErrorList
							var warnings []string
							if rule.old == "" {
								k.strategy.PrepareForCreate(ctx, obj)
								errs = k.strategy.Validate(ctx, obj)
								warnings = k.strategy.WarningsOnCreate(ctx, obj)
							} else {
								oldSpec, _ := podSpec(rule.old, oldPlace)
								old := stored(oldSpec)
								k.strategy.PrepareForUpdate(ctx, obj, old)
								errs = k.strategy.ValidateUpdate(ctx, obj, old)
								warnings = k.strategy.WarningsOnUpdate(ctx, obj, old)
							}
							errs = slices.DeleteFunc(errs, func(err *field.Error) bool { return rule.old != "" && err.Field == k.immutable })

							wantRefused := slices.Contains(rule.refused, newNames)
							if k.onlyWarns {
								warned := slices.ContainsFunc(warnings, func(w string) bool { return strings.HasPrefix(w, path+": ") })
								if wantRefused != warned || len(errs) != 0 {
									t.Errorf("%s as a %s (before: %s): want a warning: %v, got: %v, %q", newNames, newPlace, oldPlace, wantRefused, errs, warnings)
								}
								continue
							}
							if wantRefused != hasField(errs, path) || !wantRefused && len(errs) != 0 {
								t.Errorf("%s as a %s (before: %s): want refused: %v, got: %v", newNames, newPlace, oldPlace, wantRefused, errs)
							}
						}
					}
				}
			})
		}
	}
}

// TestRelaxedEnvVarNamesOfEphemeralContainers adds a debug container to a pod:
// strict validation is for the gate off and a pod that passes it, in all its
// containers.
func TestRelaxedEnvVarNamesOfEphemeralContainers(t *testing.T) {
	debug := func(pod *api.Pod, container, names, place string) {
		spec := podtest.MakePodSpec(podtest.SetContainers(podtest.MakeContainer(container)))
		spec.Containers[0].Resources = api.ResourceRequirements{}
		spec.Containers[0].EnvFrom = []api.EnvFromSource{envFromSource("")}
		for _, name := range envVarNames[names] {
			envVarNamePlaces[place](&spec, name)
		}
		pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, api.EphemeralContainer{
			EphemeralContainerCommon: api.EphemeralContainerCommon(spec.Containers[0]),
		})
	}
	before := map[string]func(old *api.Pod, names string){
		"variable": func(old *api.Pod, names string) {
			for _, name := range envVarNames[names] {
				envVarNamePlaces["variable"](&old.Spec, name)
			}
		},
		"variable of another ephemeral container": func(old *api.Pod, names string) { debug(old, "first", names, "variable") },
		"prefix of another ephemeral container":   func(old *api.Pod, names string) { debug(old, "first", names, "prefix") },
	}
	for _, rule := range envVarNameRules {
		if rule.old == "" {
			continue // a new pod has no ephemeral containers
		}
		t.Run(rule.name, func(t *testing.T) {
			featurestest.SetGate(t, features.RelaxedEnvironmentVariableValidation, rule.relaxed)
			ctx := genericapirequest.NewDefaultContext()
			for oldPlace, set := range before {
				old := podtest.MakePod("pod", podtest.SetObjectMeta(metav1.ObjectMeta{Name: "pod", Namespace: metav1.NamespaceDefault, ResourceVersion: "1"}))
				set(old, rule.old)
				for newNames := range envVarNames {
					for place, at := range map[string]string{"variable": "].env[0].name", "prefix": "].envFrom[1].prefix"} {
						obj := old.DeepCopy()
						debug(obj, "debug", newNames, place)
						pod.EphemeralContainersStrategy.PrepareForUpdate(ctx, obj, old)
						errs := pod.EphemeralContainersStrategy.ValidateUpdate(ctx, obj, old)

						path := "spec.ephemeralContainers[" + strconv.Itoa(len(old.Spec.EphemeralContainers)) + at
						wantRefused := slices.Contains(rule.refused, newNames)
						if wantRefused != hasField(errs, path) || !wantRefused && len(errs) != 0 {
							t.Errorf("%s as a %s (before: %s): want refused: %v, got: %v", newNames, place, oldPlace, wantRefused, errs)
						}
					}
				}
			}
		})
	}
}

func hasField(errs field.ErrorList, path string) bool {
	return slices.ContainsFunc(errs, func(err *field.Error) bool { return err.Field == path })
}
