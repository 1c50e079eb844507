package tekton

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/yaml"

	"podenv.dev/hack/internal/testimages"
)

// manifests are the files in the release's config/ that TaskRuns and PipelineRuns need, in the
// order in which they are applied. Events, resolvers and the webhook's autoscaler are left out.
var manifests = []string{
	"100-namespace/*.yaml", "200-*.yaml", "201-*.yaml", "300-crds/*.yaml", "clusterrole-aggregate-*.yaml",
	"config-*.yaml", "500-webhooks.yaml", "controller.yaml", "webhook.yaml",
}

// managedBy marks the objects that podenv has applied, as opposed to those of another Tekton.
const (
	managedBy = "app.kubernetes.io/managed-by"
	podenv    = "podenv"
)

var (
	koImage    = regexp.MustCompile(`ko://github\.com/tektoncd/pipeline/cmd/([a-z]+)`)
	shellImage = regexp.MustCompile(`("-shell-image",\s*)"[^"]*"`)
	minVersion = regexp.MustCompile(`KUBERNETES_MIN_VERSION\s+value:\s*"?v?([0-9.]+)`)
)

// objects reads the manifests of the release, with its images. It also returns the minimum
// version of Kubernetes that they set, as in "1.28.0".
func objects(r *Release) (all []*unstructured.Unstructured, minKubernetes string, err error) {
	config := filepath.Join(r.Tree.Dir, "config")
	for _, pattern := range manifests {
		files, err := filepath.Glob(filepath.Join(config, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, "", err
		}
		if len(files) == 0 {
			return nil, "", fmt.Errorf("%s of %s has no config/%s: correct the list of manifests for this release", r.Tree.Series.Name, r.Version, pattern)
		}
		slices.Sort(files)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, "", err
			}
			if m := minVersion.FindSubmatch(text); m != nil {
				minKubernetes = string(m[1])
			}
			found, err := parse(text, r.Images)
			if err != nil {
				return nil, "", fmt.Errorf("reading %s: %w", file, err)
			}
			all = append(all, found...)
		}
	}
	return all, minKubernetes, nil
}

// parse reads the objects of a manifest. images has the image of each program.
func parse(text []byte, images map[string]string) (all []*unstructured.Unstructured, err error) {
	text = koImage.ReplaceAllFunc(text, func(name []byte) []byte {
		program := string(koImage.FindSubmatch(name)[1])
		if images != nil && images[program] == "" {
			err = errors.Join(err, fmt.Errorf("it runs cmd/%s, which is not built: add it to the programs", program))
		}
		return []byte(images[program])
	})
	if err != nil {
		return nil, err
	}
	text = shellImage.ReplaceAll(text, []byte(`${1}"`+testimages.Busybox+`"`))
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		switch err := d.Decode(&o.Object); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case len(o.Object) == 0: // comments between two documents
			continue
		}
		o.SetLabels(labels.Merge(o.GetLabels(), labels.Set{managedBy: podenv}))
		all = append(all, o)
	}
}

// title names an object in messages.
func title(o *unstructured.Unstructured) string {
	return strings.ToLower(o.GetKind()) + " " + o.GetName()
}
