package internalversion

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/settings"
	"k8s.io/kubernetes/pkg/printers"
)

func TestColumnsOfPodPresets(t *testing.T) {
	full := settings.PodPreset{
		ObjectMeta: metav1.ObjectMeta{Name: "allow-database"},
		Spec: settings.PodPresetSpec{
			Selector:     metav1.LabelSelector{MatchLabels: map[string]string{"role": "frontend"}},
			Env:          []api.EnvVar{{Name: "DB_HOST", Value: "s3cr3t"}, {Name: "DB_PORT", Value: "s3cr3t"}},
			EnvFrom:      []api.EnvFromSource{{}},
			Volumes:      []api.Volume{{Name: "a"}, {Name: "b"}, {Name: "c"}},
			VolumeMounts: []api.VolumeMount{{Name: "a", MountPath: "/a"}, {Name: "b", MountPath: "/b"}},
		},
	}
	empty := settings.PodPreset{ObjectMeta: metav1.ObjectMeta{Name: "empty"}}
	fullRow := []any{"allow-database", "role=frontend", int64(2), int64(1), int64(3), "<unknown>"}
	emptyRow := []any{"empty", "<none>", int64(0), int64(0), int64(0), "<unknown>"}
	wide := func(row []any, names, paths string) []any { return append(row[:len(row):len(row)], names, paths) }
	generator := printers.NewTableGenerator().With(AddPodPresetHandlers)
	for _, tc := range []struct {
		name   string
		object runtime.Object
		wide   bool
		want   [][]any
	}{
		{name: "one", object: &full, want: [][]any{fullRow}},
		{name: "one, wide", object: &full, wide: true, want: [][]any{wide(fullRow, "DB_HOST,DB_PORT", "/a,/b")}},
		{name: "a list", object: &settings.PodPresetList{Items: []settings.PodPreset{full, empty}}, want: [][]any{fullRow, emptyRow}},
		{name: "a list, wide", object: &settings.PodPresetList{Items: []settings.PodPreset{empty, full}}, wide: true,
			want: [][]any{wide(emptyRow, "<none>", "<none>"), wide(fullRow, "DB_HOST,DB_PORT", "/a,/b")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			table, err := generator.GenerateTable(tc.object, printers.GenerateOptions{Wide: tc.wide})
			if err != nil {
				t.Fatal(err)
			}
			var got [][]any
			for _, row := range table.Rows {
				got = append(got, row.Cells)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected rows (-want, +got):\n%s", diff)
			}
			if len(table.ColumnDefinitions) != len(tc.want[0]) {
				t.Errorf("%d columns, and rows of %d cells", len(table.ColumnDefinitions), len(tc.want[0]))
			}
		})
	}
}
