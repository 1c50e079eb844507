package upstream

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/features"
)

const corpus = "../../corpus/envfiles"

// A cluster of this branch can move to upstream's v1.34: its pods stay valid there.
func TestUpstreamAcceptsWhatIsAccepted(t *testing.T) {
	for _, file := range podFiles(t, "accepted") {
		t.Run(name(file), func(t *testing.T) {
			if errs := create(t, file); len(errs) > 0 {
				t.Errorf("upstream refuses %s, which this branch accepts: %v", file, errs)
			}
		})
	}
}

// stricter are the pods that this branch refuses and upstream accepts.
var stricter = []string{
	// The KEP wants a relative path. Upstream looks for the file below the volume.
	"path-absolute",
	"path-root",
	// Upstream has no bounds for a path.
	"path-of-4097-bytes",
	"path-that-ends-in-a-slash",
	"path-with-a-nul-byte",
	"path-with-an-element-of-256-bytes",
	// Upstream has no limit for a name.
	"key-of-129-bytes",
	// Upstream lets every container mount a volume of env files.
	"row-6a-container-mounts-a-sub-path",
	"row-6a-container-mounts-read-only",
	"row-6a-container-mounts-twice",
	"row-6a-container-mounts-what-a-sidecar-consumes",
	"row-6a-container-mounts-what-an-init-container-consumes",
	"row-6a-container-mounts-what-another-consumes",
	"row-6a-container-mounts-what-is-optional",
	"row-6a-container-mounts-what-it-consumes",
	"row-6a-container-mounts-what-it-consumes-and-no-other-does",
	"row-6a-every-kind-of-container-mounts-and-consumes",
	"row-6a-init-container-mounts-what-it-consumes",
	"row-6a-several-containers-mount",
	"row-6a-sidecar-mounts-what-it-consumes",
}

// Where this branch is stricter than upstream is known, and each place has its reason.
func TestWhatOnlyUpstreamAccepts(t *testing.T) {
	var got []string
	for _, file := range podFiles(t, "refused") {
		if errs := create(t, file); len(errs) > 0 {
			t.Logf("refused: %s: %v", name(file), errs.ToAggregate())
		} else {
			t.Logf("accepted: %s", name(file))
			got = append(got, name(file))
		}
	}

	for _, pod := range got {
		if !slices.Contains(stricter, pod) {
			t.Errorf("upstream accepts %s, which this branch refuses: add it to the list with the rule that it breaks", pod)
		}
	}
	for _, pod := range stricter {
		if !slices.Contains(got, pod) {
			t.Errorf("upstream does not accept %s: take it from the list", pod)
		}
	}
}

// create does what upstream's API server does when a pod is created, up to and
// including validation, and returns the errors.
func create(t *testing.T, file string) field.ErrorList {
	t.Helper()
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EnvFiles, true)
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.RelaxedEnvironmentVariableValidation, true)

	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// The universal decoder applies the API's defaults.
	obj, err := runtime.Decode(legacyscheme.Codecs.UniversalDecoder(), data)
	if err != nil {
		t.Fatalf("decoding %s: %v", file, err)
	}
	pod, ok := obj.(*core.Pod)
	if !ok {
		t.Fatalf("%s is a %T, want a pod", file, obj)
	}
	pod.Namespace = "default"

	before := fileKeyRefs(pod)
	podutil.DropDisabledPodFields(pod, nil)
	if after := fileKeyRefs(pod); after != before {
		t.Fatalf("upstream drops %d of the %d fileKeyRefs of %s: is the gate on?", before-after, before, file)
	}

	opts := podutil.GetValidationOptionsFromPodSpecAndMeta(&pod.Spec, nil, &pod.ObjectMeta, nil)
	opts.ResourceIsPod = true
	return validation.ValidatePodCreate(pod, opts)
}

func fileKeyRefs(pod *core.Pod) (n int) {
	podutil.VisitContainers(&pod.Spec, podutil.AllContainers, func(c *core.Container, _ podutil.ContainerType) bool {
		for _, env := range c.Env {
			if env.ValueFrom != nil && env.ValueFrom.FileKeyRef != nil {
				n++
			}
		}
		return true
	})
	return n
}

func podFiles(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpus, folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no pods in %s", filepath.Join(corpus, folder))
	}
	return files
}

func name(file string) string { return strings.TrimSuffix(filepath.Base(file), ".yaml") }
