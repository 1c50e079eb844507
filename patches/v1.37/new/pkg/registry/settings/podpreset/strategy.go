// Package podpreset is the strategy of the API server for PodPresets.
package podpreset

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podpresetutil "k8s.io/kubernetes/pkg/api/podpreset"
	"k8s.io/kubernetes/pkg/apis/settings"
	"k8s.io/kubernetes/pkg/apis/settings/validation"
)

type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

// Strategy is what is done to PodPresets when they are created, updated and deleted.
var Strategy = strategy{legacyscheme.Scheme, names.SimpleNameGenerator}

func (strategy) NamespaceScoped() bool { return true }

func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	podpresetutil.DropDisabledFields(obj.(*settings.PodPreset), nil)
}

func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	podpresetutil.DropDisabledFields(obj.(*settings.PodPreset), old.(*settings.PodPreset))
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	preset := obj.(*settings.PodPreset)
	return validation.ValidatePodPreset(preset, podpresetutil.ValidationOptions(preset, nil))
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidatePodPresetUpdate(obj.(*settings.PodPreset), old.(*settings.PodPreset))
}

func (strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return podpresetutil.Warnings(obj.(*settings.PodPreset))
}

func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (strategy) Canonicalize(runtime.Object) {}

func (strategy) AllowCreateOnUpdate(context.Context) bool { return false }

func (strategy) AllowUnconditionalUpdate(context.Context) bool { return true }
