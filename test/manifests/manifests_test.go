package manifests

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"podenv.dev/featuregates"
)

// TestStoriesAreTheKEPs holds each manifest to what makes it the KEP's story.
func TestStoriesAreTheKEPs(t *testing.T) {
	for file, want := range map[string]struct{ variable, key string }{
		"story-1.yaml":       {"CONFIG_VAR", "CONFIG_VAR"},
		"story-2.yaml":       {"CONFIG_MAIN", "CONFIG_INIT"},
		"story-1-v1.35.yaml": {"CONFIG_VAR", "CONFIG_VAR"},
		"story-2-v1.35.yaml": {"CONFIG_MAIN", "CONFIG_INIT"},
	} {
		t.Run(file, func(t *testing.T) {
			pod := read(t, file)
			main := pod.Spec.Containers[0]
			if len(main.VolumeMounts) != 0 {
				t.Error("the container that consumes the file mounts a volume")
			}
			env := main.Env[0]
			if env.Name != want.variable || env.ValueFrom.FileKeyRef.Key != want.key {
				t.Errorf("sets %s from key %s, want %s from key %s", env.Name, env.ValueFrom.FileKeyRef.Key, want.variable, want.key)
			}
			if volume := pod.Spec.Volumes[0]; volume.EmptyDir == nil || volume.Name != env.ValueFrom.FileKeyRef.VolumeName {
				t.Errorf("the file is in volume %q, and volume %q is %+v", env.ValueFrom.FileKeyRef.VolumeName, volume.Name, volume.VolumeSource)
			}
		})
	}
}

// TestQuotedStoriesDifferInTheQuotes holds each manifest for v1.35 and later to the one for
// older minors.
func TestQuotedStoriesDifferInTheQuotes(t *testing.T) {
	quotes := strings.NewReplacer("=HELLO", "='HELLO'", "=hello", "='hello'")
	for file, quoted := range map[string]string{"story-1.yaml": "story-1-v1.35.yaml", "story-2.yaml": "story-2-v1.35.yaml"} {
		want := read(t, file)
		script := &want.Spec.InitContainers[0].Command[2]
		*script = quotes.Replace(*script)
		if diff := cmp.Diff(want, read(t, quoted)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", quoted, diff)
		}
		if !strings.Contains(*script, "'") {
			t.Errorf("%s: the script %s has no value to quote", file, *script)
		}
	}
}

// TestExpansionsAreTheDocuments holds each manifest to the variables that the document
// declares, in its order.
func TestExpansionsAreTheDocuments(t *testing.T) {
	for file, want := range map[string][]v1.EnvVar{
		"expansion-1.yaml": {
			{Name: "PUBLIC_URL", Value: "http://$(GITSERVER_SERVICE_HOST):$(GITSERVER_SERVICE_PORT)"},
		},
		"expansion-2.yaml": {
			{Name: "POD_NAMESPACE", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}},
			{Name: "PUBLIC_URL", Value: "http://gitserver.$(POD_NAMESPACE):$(SERVICE_PORT)"},
		},
	} {
		t.Run(file, func(t *testing.T) {
			if diff := cmp.Diff(want, read(t, file).Spec.Containers[0].Env); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestManifestsPullNothing(t *testing.T) {
	files := slices.Clone(Expansions)
	for _, release := range []string{"v1.33", "v1.37"} {
		gates, err := featuregates.Enabled(release)
		if err != nil {
			t.Fatal(err)
		}
		examples, err := featuregates.Examples(release, gates)
		if err != nil || len(examples) == 0 {
			t.Fatal("no examples", err)
		}
		probed, err := featuregates.Probed(release)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range probed {
			examples = append(examples, featuregates.Example{Pod: s.Probe.Pod, Objects: s.Probe.Objects})
		}
		for _, e := range examples {
			files = append(files, e.Pod)
			for _, name := range e.Objects {
				if object, err := Object(name); err != nil || object.GetName() == "" {
					t.Errorf("%s: %v (%v)", name, object, err)
				}
			}
		}
	}
	for _, file := range files {
		pod := read(t, file)
		for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			if c.ImagePullPolicy != v1.PullNever || !strings.HasPrefix(c.Image, "podenv.dev/") {
				t.Errorf("%s: container %s has image %s, pulled %s", file, c.Name, c.Image, c.ImagePullPolicy)
			}
		}
	}
}

func TestUnknownManifest(t *testing.T) {
	if _, err := Pod("story-9.yaml"); err == nil || !strings.Contains(err.Error(), "story-9.yaml") {
		t.Errorf("want an error that names the file, got %v", err)
	}
}

func read(t testing.TB, file string) *v1.Pod {
	t.Helper()
	pod, err := Pod(file)
	if err != nil {
		t.Fatal(err)
	}
	return pod
}
