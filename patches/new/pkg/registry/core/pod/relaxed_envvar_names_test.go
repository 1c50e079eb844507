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

// onlyInvalid and allButStrict are the names that are refused while strict validation is not, and is,
// in force.
var (
	onlyInvalid  = []string{"invalid"}
	allButStrict = []string{"relaxed", "other relaxed", "both relaxed", "invalid"}
)

// envVarNameRules are the results of writes: strict validation is for the gate off and, on update, an
// old object that passes it.
var envVarNameRules = []struct {
	name    string
	relaxed bool
	old     string   // empty: create
	refused []string // of the new object's names
}{
	{"gate on, create", true, "", onlyInvalid},
	{"gate on, update of an object without names", true, "absent", onlyInvalid},
	{"gate on, update of a strict object", true, "strict", onlyInvalid},
	{"gate on, update of a relaxed object", true, "relaxed", onlyInvalid},
	{"gate off, create", false, "", allButStrict},
	{"gate off, update of an object without names", false, "absent", allButStrict},
	{"gate off, update of a strict object", false, "strict", allButStrict},
	{"gate off, update of a relaxed object", false, "relaxed", onlyInvalid},
	{"gate off, update of an object that has two relaxed names", false, "both relaxed", onlyInvalid},
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

// withNames is an object of the kind with some of envVarNames in a place, and the
// field of an error about the first of them.
func (k kind) withNames(names, place string) (obj runtime.Object, path string) {
	spec := podtest.MakePodSpec(podtest.SetContainers(podtest.MakeContainer("app")))
	spec.InitContainers = []api.Container{podtest.MakeContainer("setup")}
	// No prefix is not a name that strict validation refuses.
	spec.Containers[0].EnvFrom = []api.EnvFromSource{envFromSource("")}
	for i, name := range envVarNames[names] {
		if at := envVarNamePlaces[place](&spec, name); i == 0 {
			path = k.path + at
		}
	}
	return k.stored(spec), path
}

// TestRelaxedEnvVarNames writes every kind of object that carries a pod spec
// through its strategy: whichever of its names the new object keeps, and
// wherever they stand.
func TestRelaxedEnvVarNames(t *testing.T) {
	for kindName, k := range kinds {
		for _, rule := range envVarNameRules {
			t.Run(kindName+"/"+rule.name, func(t *testing.T) {
				featurestest.SetGate(t, features.RelaxedEnvironmentVariableValidation, rule.relaxed)
				for names := range envVarNames {
					refused := slices.Contains(rule.refused, names)
					for place := range envVarNamePlaces {
						if rule.old == "" {
							k.writeNames(t, names, place, nil, "", refused)
							continue
						}
						for oldPlace := range envVarNamePlaces {
							old, _ := k.withNames(rule.old, oldPlace)
							k.writeNames(t, names, place, old, " (before: "+oldPlace+")", refused)
						}
					}
				}
			})
		}
	}
}

// writeNames writes an object with names in a place, over old if that is not nil, and
// checks whether they are refused.
func (k kind) writeNames(t *testing.T, names, place string, old runtime.Object, before string, refused bool) {
	t.Helper()
	obj, path := k.withNames(names, place)
	errs, warnings := k.write(obj, old)
	got := hasField(errs, path)
	if k.onlyWarns {
		got = slices.ContainsFunc(warnings, func(w string) bool { return strings.HasPrefix(w, path+": ") })
	}
	if got != refused || (k.onlyWarns || !refused) && len(errs) > 0 {
		t.Errorf("%s as a %s%s: want refused: %v, got: %v, %q", names, place, before, refused, errs, warnings)
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
