package audit

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestUses(t *testing.T) {
	const special = "Logging:LogLevel:Default"
	for name, test := range map[string]struct {
		spec v1.PodSpec
		want []use
	}{
		"no container at all": {},
		"what every Kubernetes accepts": {
			spec: podOf("c", literal("A"), literal("a.b-C_1"), v1.EnvVar{Name: "F", ValueFrom: &v1.EnvVarSource{}}),
		},
		"a variable from an env file": {
			spec: podOf("c", literal("A"), fromFile("F")),
			want: []use{{"c", "F", FileKeyRef}},
		},
		"a special name": {
			spec: podOf("c", literal("A"), literal(special)),
			want: []use{{"c", special, RelaxedName}},
		},
		"a special name from an env file is both": {
			spec: podOf("c", fromFile(special)),
			want: []use{{"c", special, FileKeyRef}, {"c", special, RelaxedName}},
		},
		"a special prefix": {
			spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", EnvFrom: []v1.EnvFromSource{{}, {Prefix: "DB_"}, {Prefix: "db:"}}}}},
			want: []use{{"c", "db:", RelaxedPrefix}},
		},
		"containers of every kind": {
			spec: v1.PodSpec{
				InitContainers: []v1.Container{{Name: "init", Env: []v1.EnvVar{literal("1")}}},
				Containers:     []v1.Container{{Name: "c", Env: []v1.EnvVar{literal("2")}}, {Name: "d", Env: []v1.EnvVar{literal("3")}}},
				EphemeralContainers: []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{
					Name: "debug", Env: []v1.EnvVar{literal("4")}, EnvFrom: []v1.EnvFromSource{{Prefix: "5"}},
				}}},
			},
			want: []use{{"init", "1", RelaxedName}, {"c", "2", RelaxedName}, {"d", "3", RelaxedName},
				{"debug", "5", RelaxedPrefix}, {"debug", "4", RelaxedName}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := uses(&test.spec); !slices.Equal(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func literal(name string) v1.EnvVar { return v1.EnvVar{Name: name, Value: "value"} }

func fromFile(name string) v1.EnvVar {
	return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{
		FileKeyRef: &v1.FileKeySelector{VolumeName: "config", Path: "config.env", Key: "KEY"},
	}}
}

// podOf is a pod of one container.
func podOf(container string, env ...v1.EnvVar) v1.PodSpec {
	return v1.PodSpec{Containers: []v1.Container{{Name: container, Env: env}}}
}
