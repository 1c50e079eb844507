package audit

import (
	"cmp"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// The values of a Finding's What.
const (
	FileKeyRef    = "fileKeyRef"     // the variable comes from an env file (KEP-3721)
	RelaxedName   = "relaxed name"   // strict validation refuses the variable's name (KEP-4369)
	RelaxedPrefix = "relaxed prefix" // strict validation refuses the prefix of an envFrom
	PodPreset     = "PodPreset"      // the object itself: a PodPreset
	RelaxedKey    = "relaxed key"    // it refuses the key of a fileKeyRef, or the name that envFrom makes of a key
)

// Finding is one use of a feature, by one variable of one container, or a PodPreset.
type Finding struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Owner     string `json:"owner,omitempty"` // KIND/NAME of the object's controller
	Container string `json:"container"`       // regular, init or ephemeral; empty in a PodPreset
	Variable  string `json:"variable"`        // name; for RelaxedPrefix the prefix, for a fileKeyRef's RelaxedKey the key; empty for PodPreset
	What      string `json:"what"`            // FileKeyRef, RelaxedName, RelaxedPrefix, RelaxedKey or PodPreset
}

// compare sorts by namespace, kind and name. A stable sort leaves an object's own
// findings in the order of its containers.
func compare(a, b Finding) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// use is a Finding without the object that it was found in.
type use struct{ container, variable, what string }

// uses lists the uses in a pod, or in what a template makes of one.
func uses(spec *v1.PodSpec) []use {
	var found []use
	for c := range podutil.ContainerIter(spec, podutil.AllContainers) {
		found = appendUses(found, c.Name, c.Env, c.EnvFrom)
	}
	return found
}

func appendUses(found []use, container string, env []v1.EnvVar, envFrom []v1.EnvFromSource) []use {
	for i := range envFrom {
		if prefix := envFrom[i].Prefix; prefix != "" && !strict(prefix) {
			found = append(found, use{container, prefix, RelaxedPrefix})
		}
	}
	for i := range env {
		variable := &env[i]
		if variable.ValueFrom != nil && variable.ValueFrom.FileKeyRef != nil {
			found = append(found, use{container, variable.Name, FileKeyRef})
			if key := variable.ValueFrom.FileKeyRef.Key; !strict(key) {
				found = append(found, use{container, key, RelaxedKey})
			}
		}
		if !strict(variable.Name) {
			found = append(found, use{container, variable.Name, RelaxedName})
		}
	}
	return found
}

// findings turns the uses in object into what a user reads.
func findings(kind string, object *metav1.ObjectMeta, uses []use) []Finding {
	owner := ""
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		owner = fmt.Sprintf("%s/%s", controller.Kind, controller.Name)
	}
	found := make([]Finding, 0, len(uses))
	for _, use := range uses {
		found = append(found, Finding{
			Namespace: object.Namespace, Kind: kind, Name: object.Name, Owner: owner,
			Container: use.container, Variable: use.variable, What: use.what,
		})
	}
	return found
}
