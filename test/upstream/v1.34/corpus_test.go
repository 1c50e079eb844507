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

// Where this branch decides otherwise than upstream is known: the file of the pod says it, with
// the reason where upstream accepts the pod. test/e2e asks upstream's API servers the same.
func TestWhatUpstreamRefuses(t *testing.T) {
	for _, file := range podFiles(t, "refused") {
		t.Run(name(file), func(t *testing.T) {
			var got []string
			for _, err := range create(t, file) {
				got = append(got, err.Field)
			}
			slices.Sort(got)
			if want := upstreamFields(t, file); !slices.Equal(got, want) {
				t.Errorf("upstream refuses the fields %q, want %q: say it in %s", got, want, file)
			}
		})
	}
}

// upstreamFields returns the fields of upstream's errors that the file of a pod names, sorted,
// see test/corpus.
func upstreamFields(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var fields, own []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "# upstream accepts: ") {
			return nil
		}
		if field, found := strings.CutPrefix(line, "# upstream field: "); found {
			fields = append(fields, field)
		}
		if field, found := strings.CutPrefix(line, "# field: "); found {
			own = append(own, field)
		}
	}
	if len(fields) == 0 {
		fields = own
	}
	slices.Sort(fields)
	return fields
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
