package expand

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// valueFrom returns what a variable's source is, in a few words, and its value.
func (s *containerStart) valueFrom(ctx context.Context, from *corev1.EnvVarSource) (string, value, error) {
	switch {
	case from.FieldRef != nil:
		return "field " + from.FieldRef.FieldPath, s.workload.field(from.FieldRef), nil
	case from.ResourceFieldRef != nil:
		return "resource " + from.ResourceFieldRef.Resource, s.workload.resource(from.ResourceFieldRef, s.container), nil
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		id := s.id(ref.Name)
		data, found, why, err := s.objects.configMap(ctx, id)
		return fmt.Sprintf("ConfigMap %s, key %s", ref.Name, ref.Key), fromKey("ConfigMap", id, data, found, why, ref.Key, ref.Optional), err
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		id := s.id(ref.Name)
		data, found, why, err := s.objects.secret(ctx, id)
		return fmt.Sprintf("Secret %s, key %s", ref.Name, ref.Key), s.masked(fromKey("Secret", id, data, found, why, ref.Key, ref.Optional)), err
	case from.FileKeyRef != nil:
		ref := from.FileKeyRef
		return fmt.Sprintf("file %s of volume %s, key %s", ref.Path, ref.VolumeName, ref.Key),
			value{unknown: "read from the file when the container starts"}, nil
	}
	return ofManifest, value{}, nil
}

func (s *containerStart) id(name string) objectID {
	return objectID{s.workload.meta.Namespace, name}
}

func (s *containerStart) masked(v value) value {
	if v.text != "" && !s.showSecrets {
		v.text = mask
	}
	return v
}

// fromKey is what a reference to a key of a ConfigMap or Secret comes to.
func fromKey(kind string, id objectID, data map[string]string, found presence, why, key string, optional *bool) value {
	var missing string
	switch found {
	case isUnknown:
		return value{unknown: why}
	case isMissing:
		missing = fmt.Sprintf("%s %s/%s does not exist", kind, id.namespace, id.name)
	case isThere:
		text, ok := data[key]
		if ok {
			return value{text: text}
		}
		missing = fmt.Sprintf("%s %s/%s has no key %s", kind, id.namespace, id.name, key)
	}
	if optional != nil && *optional {
		return value{unset: missing + ", and it is optional"}
	}
	return value{fails: missing}
}

// envFrom sets a variable for each key of a ConfigMap or Secret.
func (s *containerStart) envFrom(ctx context.Context, from *corev1.EnvFromSource) error {
	var (
		kind, name string
		optional   *bool
		read       func(context.Context, objectID) (map[string]string, presence, string, error)
		secret     bool
	)
	switch {
	case from.ConfigMapRef != nil:
		kind, name, optional, read = "ConfigMap", from.ConfigMapRef.Name, from.ConfigMapRef.Optional, s.objects.configMap
	case from.SecretRef != nil:
		kind, name, optional, read, secret = "Secret", from.SecretRef.Name, from.SecretRef.Optional, s.objects.secret, true
	default:
		return nil
	}
	data, found, why, err := read(ctx, s.id(name))
	if err != nil {
		return err
	}
	title := kind + " " + name
	switch {
	case found == isUnknown:
		s.open = append(s.open, openSource{from.Prefix, title, why})
		s.finding(Unknown, fmt.Sprintf("the variables of envFrom %s: %s", title, why))
	case found == isMissing && optional != nil && *optional:
		s.finding(Unset, fmt.Sprintf("envFrom %s sets nothing: it does not exist, and it is optional", title))
	case found == isMissing:
		s.finding(Fails, fmt.Sprintf("the container does not start: envFrom %s does not exist in namespace %s", title, s.workload.meta.Namespace))
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		v := value{text: data[key]}
		if secret {
			v = s.masked(v)
		}
		s.setKey(from.Prefix+key, title, v.text)
	}
	return nil
}

// relaxedGate is what decides on names that the strict rule refuses.
const relaxedGate = "the kubelet's gate RelaxedEnvironmentVariableValidation"

// setKey sets the variable that envFrom makes of a key. Only a kubelet with the relaxed
// gate makes one of a key that is no name by the strict rule.
func (s *containerStart) setKey(name, title, text string) {
	v := Variable{Name: name, Source: title, Text: Text{Value: text}}
	switch {
	case validation.IsEnvVarName(name) == nil || s.relaxedNames != nil && *s.relaxedNames:
	case s.relaxedNames != nil:
		s.finding(Unset, fmt.Sprintf("%s of envFrom %s is not set: %s is off", name, title, relaxedGate))
		return
	default:
		v.Value = placeholder(name)
		v.Findings = []Finding{{Type: Unknown, Name: name, Text: "set only if " + relaxedGate + " is on; say so with --feature-gates"}}
	}
	s.set(v)
}

// finding adds what is about no variable in particular.
func (s *containerStart) finding(findingType, text string) {
	s.result.Findings = append(s.result.Findings, Finding{Type: findingType, Text: text})
}
