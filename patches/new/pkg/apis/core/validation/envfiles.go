package validation

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
	podshelper "k8s.io/kubernetes/pkg/apis/core/pods"
)

// maxEnvFileKeyLength is the longest name, in bytes, that the kubelet accepts
// in an env file.
const maxEnvFileKeyLength = 128

// Lengths in bytes: those of Linux (PATH_MAX, NAME_MAX), and of what an error
// shows of a path.
const (
	maxEnvFilePathLength        = 4096
	maxEnvFilePathElementLength = 255
	maxShownPathLength          = 253
)

// validateFileKeySelector checks what can be known of a fileKeyRef without the
// rest of the pod. A path or key that is stored with the object may stay, whatever
// API server it is from.
func validateFileKeySelector(selector *core.FileKeySelector, fldPath *field.Path, opts PodValidationOptions) field.ErrorList {
	allErrs := field.ErrorList{}

	if len(selector.VolumeName) == 0 {
		allErrs = append(allErrs, field.Required(fldPath.Child("volumeName"), ""))
	}
	if len(selector.Path) == 0 {
		allErrs = append(allErrs, field.Required(fldPath.Child("path"), ""))
	} else if !opts.StoredEnvFilePaths.Has(selector.Path) {
		allErrs = append(allErrs, validateEnvFilePath(selector.Path, fldPath.Child("path"))...)
	}

	keyPath := fldPath.Child("key")
	if len(selector.Key) == 0 {
		return append(allErrs, field.Required(keyPath, ""))
	}
	if opts.StoredEnvFileKeys.Has(selector.Key) {
		return allErrs
	}
	if len(selector.Key) > maxEnvFileKeyLength {
		allErrs = append(allErrs, field.TooLong(keyPath, selector.Key, maxEnvFileKeyLength))
	}
	// Relaxed whatever RelaxedEnvironmentVariableValidation says: a stored pod
	// has to survive a flip of that gate, and the kubelet enforces the rule in
	// force on the names in the file.
	for _, msg := range validation.IsRelaxedEnvVarName(selector.Key) {
		allErrs = append(allErrs, field.Invalid(keyPath, selector.Key, msg))
	}
	return allErrs
}

// validateEnvFilePath checks that the path of an env file stays in the volume
// and that a Linux node can have such a file. No error shows all of a long path.
func validateEnvFilePath(path string, fldPath *field.Path) field.ErrorList {
	allErrs := field.ErrorList{}
	if len(path) > maxEnvFilePathLength {
		allErrs = append(allErrs, field.TooLong(fldPath, "", maxEnvFilePathLength))
	}
	for _, element := range strings.Split(path, "/") {
		if len(element) > maxEnvFilePathElementLength {
			allErrs = append(allErrs, field.Invalid(fldPath, shownPath(path), fmt.Sprintf("each element must have at most %d bytes", maxEnvFilePathElementLength)))
			break
		}
	}
	if strings.Contains(path, "\x00") {
		allErrs = append(allErrs, field.Invalid(fldPath, shownPath(path), "must not contain a NUL byte"))
	}
	if strings.HasSuffix(path, "/") {
		allErrs = append(allErrs, field.Invalid(fldPath, shownPath(path), "must not end in a slash"))
	}
	if strings.HasPrefix(path, "/") {
		allErrs = append(allErrs, field.Invalid(fldPath, shownPath(path), "must be a relative path"))
	}
	if strings.Contains("/"+path+"/", "/../") {
		allErrs = append(allErrs, field.Invalid(fldPath, shownPath(path), "must not contain '..'"))
	}
	return allErrs
}

// shownPath returns what an error shows of a path.
func shownPath(path string) string {
	if len(path) > maxShownPathLength {
		return path[:maxShownPathLength] + "..."
	}
	return path
}

// ValidateFileKeyRefs checks every fileKeyRef of a pod spec, and nothing else: a
// template may be one that is not validated as a pod is.
func ValidateFileKeyRefs(spec *core.PodSpec, fldPath *field.Path, opts PodValidationOptions) field.ErrorList {
	allErrs := field.ErrorList{}
	podshelper.VisitContainersWithPath(spec, fldPath, func(c *core.Container, containerPath *field.Path) bool {
		for i, env := range c.Env {
			if env.ValueFrom != nil && env.ValueFrom.FileKeyRef != nil {
				allErrs = append(allErrs, validateEnvVarValueFrom(env, containerPath.Child("env").Index(i).Child("valueFrom"), opts)...)
			}
		}
		return true
	})
	volumes := map[string]core.VolumeSource{}
	for _, volume := range spec.Volumes {
		volumes[volume.Name] = volume.VolumeSource
	}
	allErrs = append(allErrs, validateFileKeyRefVolumes(spec, volumes, fldPath)...)
	if !opts.AllowEnvFileMounts {
		allErrs = append(allErrs, ValidateEnvFileMounts(spec, fldPath)...)
	}
	return allErrs
}

// validateFileKeyRefVolumes checks that every fileKeyRef of a pod takes its
// file from a volume that the pod has and that is an emptyDir.
func validateFileKeyRefVolumes(spec *core.PodSpec, volumes map[string]core.VolumeSource, fldPath *field.Path) field.ErrorList {
	allErrs := field.ErrorList{}

	podshelper.VisitContainersWithPath(spec, fldPath, func(c *core.Container, containerPath *field.Path) bool {
		for i, env := range c.Env {
			if env.ValueFrom == nil || env.ValueFrom.FileKeyRef == nil || len(env.ValueFrom.FileKeyRef.VolumeName) == 0 {
				continue
			}
			name := env.ValueFrom.FileKeyRef.VolumeName
			namePath := containerPath.Child("env").Index(i).Child("valueFrom", "fileKeyRef", "volumeName")
			if volume, found := volumes[name]; !found {
				allErrs = append(allErrs, field.NotFound(namePath, name))
			} else if volume.EmptyDir == nil {
				allErrs = append(allErrs, field.Invalid(namePath, name, "must be the name of an emptyDir volume"))
			}
		}
		return true
	})
	return allErrs
}
