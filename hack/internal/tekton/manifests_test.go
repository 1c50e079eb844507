package tekton

import (
	"strings"
	"testing"

	"podenv.dev/test/images"
)

const deployment = `# a comment
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: tekton-pipelines-controller
  labels: {a: b}
spec:
  image: ko://github.com/tektoncd/pipeline/cmd/controller
  args: [
    "-entrypoint-image", "ko://github.com/tektoncd/pipeline/cmd/entrypoint",
    # another comment
    "-shell-image", "registry.example/busybox@sha256:0123",
  ]
---
apiVersion: v1
kind: Service
metadata: {name: s}
`

func TestManifestsNameTheImagesThatAreBuilt(t *testing.T) {
	objects, err := parse([]byte(deployment), map[string]string{"controller": "c:1", "entrypoint": "e:1"})
	if err != nil || len(objects) != 2 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	spec := objects[0].Object["spec"].(map[string]any)
	if spec["image"] != "c:1" {
		t.Errorf("image %v", spec["image"])
	}
	args := spec["args"].([]any)
	if args[1] != "e:1" || args[3] != images.Busybox {
		t.Errorf("args %v", args)
	}
	for _, o := range objects {
		if o.GetLabels()[managedBy] != podenv {
			t.Errorf("%s has the labels %v", title(o), o.GetLabels())
		}
	}
	if objects[0].GetLabels()["a"] != "b" {
		t.Error("the manifest's own labels are lost")
	}
}

func TestAManifestOfAProgramThatIsNotBuiltIsRefused(t *testing.T) {
	_, err := parse([]byte(deployment), map[string]string{"controller": "c:1"})
	if err == nil || !strings.Contains(err.Error(), "cmd/entrypoint") {
		t.Errorf("error %v", err)
	}
}

func TestAClusterThatIsTooOldIsRefused(t *testing.T) {
	for server, fits := range map[string]bool{
		"v1.27.16": false, "v1.28.0": true, "v1.33.13+podenv.25": true, "v1.28.0-alpha.1": true,
	} {
		if err := checkVersion(server, "1.28.0", "v1.10.0"); (err == nil) != fits || err != nil && !strings.Contains(err.Error(), "the cluster cannot have Tekton: ") {
			t.Errorf("%s: %v", server, err)
		}
	}
}
