package validation

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	podtest "k8s.io/kubernetes/pkg/api/pod/testing"
	"k8s.io/kubernetes/pkg/apis/core"
)

func TestValidateFileKeyRef(t *testing.T) {
	valid := func(tweaks ...func(*core.EnvVar)) core.EnvVar {
		env := core.EnvVar{Name: "FROM_FILE", ValueFrom: &core.EnvVarSource{
			FileKeyRef: &core.FileKeySelector{VolumeName: "config", Path: "dir/config.env", Key: "KEY"},
		}}
		for _, tweak := range tweaks {
			tweak(&env)
		}
		return env
	}
	selector := func(tweak func(*core.FileKeySelector)) core.EnvVar {
		return valid(func(env *core.EnvVar) { tweak(env.ValueFrom.FileKeyRef) })
	}
	volumeName := func(name string) core.EnvVar {
		return selector(func(s *core.FileKeySelector) { s.VolumeName = name })
	}
	path := func(path string) core.EnvVar {
		return selector(func(s *core.FileKeySelector) { s.Path = path })
	}
	key := func(key string) core.EnvVar {
		return selector(func(s *core.FileKeySelector) { s.Key = key })
	}

	testCases := []struct {
		name string
		env  core.EnvVar
		want field.ErrorList // of the fields below valueFrom
	}{
		{name: "a file in an emptyDir", env: valid()},
		{name: "optional", env: selector(func(s *core.FileKeySelector) { yes := true; s.Optional = &yes })},
		{name: "path with dots that are no element of their own", env: path("..data/a..b/.env..")},
		{name: "key of 128 bytes", env: key(strings.Repeat("K", 128))},
		{name: "key that only the relaxed rule allows", env: key("9 lives: $%")},

		{name: "path of 4096 bytes, with elements of 255", env: path(strings.Repeat(strings.Repeat("x", 255)+"/", 15) + strings.Repeat("x", 254) + "/x")},

		{name: "no volume name", env: volumeName(""), want: field.ErrorList{
			field.Required(field.NewPath("fileKeyRef", "volumeName"), ""),
		}},
		{name: "volume that the pod does not have", env: volumeName("other"), want: field.ErrorList{
			field.NotFound(field.NewPath("fileKeyRef", "volumeName"), "other"),
		}},
		{name: "volume that is no emptyDir", env: volumeName("host"), want: field.ErrorList{
			field.Invalid(field.NewPath("fileKeyRef", "volumeName"), "host", "emptyDir"),
		}},
		{name: "no path", env: path(""), want: field.ErrorList{
			field.Required(field.NewPath("fileKeyRef", "path"), ""),
		}},
		{name: "absolute path", env: path("/config.env"), want: field.ErrorList{
			field.Invalid(field.NewPath("fileKeyRef", "path"), "/config.env", "must be a relative path"),
		}},
		{name: "path that steps back", env: path("dir/../../config.env"), want: field.ErrorList{
			field.Invalid(field.NewPath("fileKeyRef", "path"), "dir/../../config.env", "must not contain '..'"),
		}},
		{name: "path of 4097 bytes", env: path(strings.Repeat(strings.Repeat("x", 255)+"/", 15) + strings.Repeat("x", 255) + "/x"), want: field.ErrorList{
			field.TooLong(field.NewPath("fileKeyRef", "path"), "", 4096),
		}},
		{name: "path with an element of 256 bytes", env: path("dir/" + strings.Repeat("x", 256)), want: field.ErrorList{
			field.Invalid(field.NewPath("fileKeyRef", "path"), "", "at most 255 bytes"),
		}},
		{name: "path with a NUL byte", env: path("config\x00.env"), want: field.ErrorList{
			field.Invalid(field.NewPath("fileKeyRef", "path"), "", "NUL"),
		}},
		{name: "path that ends in a slash", env: path("config.env/"), want: field.ErrorList{
			field.Invalid(field.NewPath("fileKeyRef", "path"), "", "must not end in a slash"),
		}},
		{name: "no key", env: key(""), want: field.ErrorList{
			field.Required(field.NewPath("fileKeyRef", "key"), ""),
		}},
		{name: "key of 129 bytes", env: key(strings.Repeat("K", 129)), want: field.ErrorList{
			field.TooLong(field.NewPath("fileKeyRef", "key"), "", 128),
		}},
		{name: "key with =", env: key("A=B"), want: field.ErrorList{
			field.Invalid(field.NewPath("fileKeyRef", "key"), "A=B", "printable ASCII"),
		}},
		{name: "key that is not ASCII", env: key("SCHL\u00dcSSEL"), want: field.ErrorList{
			field.Invalid(field.NewPath("fileKeyRef", "key"), "SCHL\u00dcSSEL", "printable ASCII"),
		}},
		{name: "a value as well", env: valid(func(env *core.EnvVar) { env.Value = "literal" }), want: field.ErrorList{
			field.Invalid(nil, "", "may not be specified when `value` is not empty"),
		}},
		{name: "a second source", env: valid(func(env *core.EnvVar) {
			env.ValueFrom.SecretKeyRef = &core.SecretKeySelector{LocalObjectReference: core.LocalObjectReference{Name: "secret"}, Key: "key"}
		}), want: field.ErrorList{
			field.Invalid(nil, "", "may not have more than one field specified at a time"),
		}},
		{name: "no source", env: core.EnvVar{Name: "NO_SOURCE", ValueFrom: &core.EnvVarSource{}}, want: field.ErrorList{
			field.Invalid(nil, "", "`secretKeyRef` or `fileKeyRef`"),
		}},
	}

	containers := map[string]func(*core.PodSpec, []core.EnvVar){
		"spec.containers[0]":     func(spec *core.PodSpec, env []core.EnvVar) { spec.Containers[0].Env = env },
		"spec.initContainers[0]": func(spec *core.PodSpec, env []core.EnvVar) { spec.InitContainers[0].Env = env },
		"spec.ephemeralContainers[0]": func(spec *core.PodSpec, env []core.EnvVar) {
			spec.EphemeralContainers[0].Env = env
		},
	}
	hostPathType := core.HostPathUnset
	for container, setEnv := range containers {
		for _, tc := range testCases {
			t.Run(container+"/"+tc.name, func(t *testing.T) {
				spec := &podtest.MakePod("pod",
					podtest.SetVolumes(
						podtest.MakeEmptyVolume("config"),
						core.Volume{Name: "host", VolumeSource: core.VolumeSource{HostPath: &core.HostPathVolumeSource{Path: "/srv", Type: &hostPathType}}},
					),
					podtest.SetInitContainers(podtest.MakeContainer("init")),
					podtest.SetEphemeralContainers(core.EphemeralContainer{EphemeralContainerCommon: core.EphemeralContainerCommon{
						Name: "debug", Image: "image", ImagePullPolicy: core.PullIfNotPresent, TerminationMessagePolicy: core.TerminationMessageReadFile,
					}}),
				).Spec
				setEnv(spec, []core.EnvVar{{Name: "LITERAL", Value: "value"}, tc.env})

				got := ValidatePodSpec(spec, nil, field.NewPath("spec"), PodValidationOptions{EnvFilesEnabled: true})

				if len(got) != len(tc.want) {
					t.Fatalf("want %d errors, got: %v", len(tc.want), got)
				}
				for i, want := range tc.want {
					wantField := container + ".env[1].valueFrom"
					if want.Field != "<nil>" {
						wantField += "." + want.Field
					}
					if got[i].Type != want.Type || got[i].Field != wantField || !strings.Contains(got[i].Detail, want.Detail) {
						t.Errorf("want %s: %s: ...%s..., got: %v", wantField, want.Type, want.Detail, got[i])
					}
				}
			})
		}
	}
}

// An API server with the gate off does not offer a source that it would drop.
func TestValidateEnvVarWithoutSourceWhileEnvFilesAreDisabled(t *testing.T) {
	env := core.EnvVar{Name: "NO_SOURCE", ValueFrom: &core.EnvVarSource{}}
	errs := validateEnvVarValueFrom(env, field.NewPath("valueFrom"), PodValidationOptions{})
	if len(errs) != 1 || strings.Contains(errs[0].Detail, "fileKeyRef") {
		t.Errorf("want one error that does not mention fileKeyRef, got: %v", errs)
	}
}

// The path of an object that is refused can be as long as the object: no error
// shows all of it.
func TestErrorsShowTheStartOfALongPath(t *testing.T) {
	for name, path := range map[string]string{
		"absolute":      "/" + strings.Repeat("x/", 400_000) + "x",
		"steps back":    "../" + strings.Repeat("x/", 400_000) + "x",
		"one element":   strings.Repeat("x", 800_000),
		"NUL and slash": strings.Repeat("\x00/", 400_000),
	} {
		errs := validateEnvFilePath(path, field.NewPath("path"))
		for _, err := range errs {
			// A NUL byte is four bytes as Go quotes it.
			if len(err.Error()) > 4*256+100 {
				t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
			}
		}
		if len(errs) == 0 {
			t.Errorf("%s: want an error", name)
		}
	}
}

func TestErrorOfLongElementsIsOne(t *testing.T) {
	long := strings.Repeat("x", 256)
	if errs := validateEnvFilePath(long+"/"+long, field.NewPath("path")); len(errs) != 1 {
		t.Errorf("want one error, got: %v", errs)
	}
}

func TestErrorsShowAtMost256BytesOfAPath(t *testing.T) {
	for length, want := range map[int]string{
		256: "/" + strings.Repeat("x", 252) + "...",
		254: "/" + strings.Repeat("x", 252) + "...",
		253: "/" + strings.Repeat("x", 252),
	} {
		errs := validateEnvFilePath("/"+strings.Repeat("x", length-1), field.NewPath("path"))
		if shown := errs[len(errs)-1].BadValue; shown != want {
			t.Errorf("%d bytes: want %q, got %q", length, want, shown)
		}
	}
}

// The rule holds in ValidatePodSpec for whoever does not ask for the exception,
// such as the kubelet for static pods.
func TestValidatePodSpecWithEnvFileMounts(t *testing.T) {
	breaking := podtest.MakePod("pod",
		podtest.SetVolumes(podtest.MakeEmptyVolume("config")),
		podtest.SetContainers(podtest.MakeContainer("app", func(c *core.Container) {
			c.Env, c.VolumeMounts = consumesVolumes("config").Env, mountsVolumes("config").VolumeMounts
		})),
	)
	testCases := []struct {
		name string
		opts PodValidationOptions
		want []string
	}{
		{name: "by default", want: []string{"spec.containers[0].volumeMounts[0].name"}},
		{name: "with the gate on", opts: PodValidationOptions{EnvFilesEnabled: true}, want: []string{"spec.containers[0].volumeMounts[0].name"}},
		{name: "for an object that already broke the rule", opts: PodValidationOptions{AllowEnvFileMounts: true}},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, err := range ValidatePodSpec(&breaking.Spec, nil, field.NewPath("spec"), tc.opts) {
				got = append(got, err.Field)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("want errors of fields %v, got: %v", tc.want, got)
			}
		})
	}
}
