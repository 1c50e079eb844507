package internalversion

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/apis/settings"
	"k8s.io/kubernetes/pkg/printers"
)

// AddPodPresetHandlers adds the columns of PodPresets. None of them has a value of a
// variable.
func AddPodPresetHandlers(h printers.PrintHandler) {
	columns := []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
		{Name: "Selector", Type: "string", Description: "The pods that the preset is injected into."},
		{Name: "Env", Type: "integer", Description: "How many variables it injects."},
		{Name: "EnvFrom", Type: "integer", Description: "How many sources of variables it injects."},
		{Name: "Volumes", Type: "integer", Description: "How many volumes it injects."},
		{Name: "Age", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
		{Name: "Variables", Type: "string", Priority: 1, Description: "The names of the variables."},
		{Name: "Mounts", Type: "string", Priority: 1, Description: "Where the volumes are mounted."},
	}
	_ = h.TableHandler(columns, printPodPreset)     // fails for a wrong signature only, as a test shows
	_ = h.TableHandler(columns, printPodPresetList) // as above
}

func printPodPreset(preset *settings.PodPreset, options printers.GenerateOptions) ([]metav1.TableRow, error) {
	spec := &preset.Spec
	row := metav1.TableRow{Object: runtime.RawExtension{Object: preset}}
	row.Cells = append(row.Cells, preset.Name, metav1.FormatLabelSelector(&spec.Selector),
		int64(len(spec.Env)), int64(len(spec.EnvFrom)), int64(len(spec.Volumes)), translateTimestampSince(preset.CreationTimestamp))
	if options.Wide {
		var names, paths []string
		for i := range spec.Env {
			names = append(names, spec.Env[i].Name)
		}
		for i := range spec.VolumeMounts {
			paths = append(paths, spec.VolumeMounts[i].MountPath)
		}
		row.Cells = append(row.Cells, orNone(names), orNone(paths))
	}
	return []metav1.TableRow{row}, nil
}

func orNone(words []string) string {
	if len(words) == 0 {
		return "<none>"
	}
	return strings.Join(words, ",")
}

func printPodPresetList(list *settings.PodPresetList, options printers.GenerateOptions) ([]metav1.TableRow, error) {
	rows := make([]metav1.TableRow, 0, len(list.Items))
	for i := range list.Items {
		r, err := printPodPreset(&list.Items[i], options)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r...)
	}
	return rows, nil
}
