package pod

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// TemplateAfterUpdate returns the pod template of a run that is updated. It is old, which the run has,
// if updated gives the same with a default, as the manifest does that the run was created from. The
// default is today's, or what old has of it. Otherwise, and if the cluster has no default, it is updated.
func TemplateAfterUpdate(updated, old, defaultTpl *Template) *Template {
	if defaultTpl == nil {
		return updated
	}
	merged := func(tpl, defaultTpl *Template) *Template {
		return MergePodTemplateWithDefault(tpl.DeepCopy(), defaultTpl.DeepCopy())
	}
	inStock := merged(updated, defaultTpl) // as in a run that stock Tekton created
	if updated != nil {
		inStock.Env = mergeByName(defaultTpl.Env, updated.Env)
	}
	same := equality.Semantic.DeepEqual
	if same(inStock, old) || same(merged(updated, defaultTpl), merged(old, defaultTpl)) ||
		old != nil && same(merged(updated, old.partOf(defaultTpl)), old) {
		return old.DeepCopy()
	}
	return updated
}

// partOf returns what tpl has of the fields, variables and volumes that the default pod template sets.
// Their values may be others, which the default had once.
func (tpl *Template) partOf(defaultTpl *Template) *Template {
	part := tpl.DeepCopy()
	fields, defaults := reflect.ValueOf(part).Elem(), reflect.ValueOf(defaultTpl).Elem()
	for i := range fields.NumField() {
		if defaults.Field(i).IsZero() {
			fields.Field(i).SetZero()
		}
	}
	part.Env = slices.DeleteFunc(part.Env, func(e corev1.EnvVar) bool {
		return !slices.ContainsFunc(defaultTpl.Env, func(d corev1.EnvVar) bool { return d.Name == e.Name })
	})
	part.Volumes = slices.DeleteFunc(part.Volumes, func(v corev1.Volume) bool {
		return !slices.ContainsFunc(defaultTpl.Volumes, func(d corev1.Volume) bool { return d.Name == v.Name })
	})
	return part
}
