package nodeimage

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	appsv1 "k8s.io/api/apps/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/testutil"
)

func TestStorageOfKindsModule(t *testing.T) {
	s, err := storageIn(filepath.Join(moduleOf(t, kindModule), storageSource))
	if err != nil {
		t.Fatal(err)
	}
	var class storagev1.StorageClass
	var deployment appsv1.Deployment
	for doc := range strings.SplitSeq(s.manifest, "\n---\n") {
		for kind, object := range map[string]any{"StorageClass": &class, "Deployment": &deployment} {
			if strings.Contains(doc, "\nkind: "+kind+"\n") {
				if err := yaml.UnmarshalStrict([]byte(doc), object); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
			}
		}
	}
	if got := *class.VolumeBindingMode; got != storagev1.VolumeBindingWaitForFirstConsumer {
		t.Errorf("volumes are bound %s: before it is known on which node", got)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	if container.Image != s.provisioner || !slices.Contains(container.Command, s.helper) {
		t.Errorf("the provisioner is %s with %q, want the images %s and %s", container.Image, container.Command, s.provisioner, s.helper)
	}
	if want := filepath.Base(s.support().binary); container.Command[0] != want {
		t.Errorf("the provisioner is started as %s, and the image has %s", container.Command[0], want)
	}
}

func TestStorageThatKindNoLongerHas(t *testing.T) {
	for name, tc := range map[string]struct{ source, wantErr string }{
		"a constant is missing": {"package nodeimage\nconst defaultStorageManifest, storageProvisionerImage = `x`, `y`", "has no string storageHelperImage"},
		"it is no string":       {"package nodeimage\nconst defaultStorageManifest, storageProvisionerImage, storageHelperImage = `x`, `y`, 1", "has no string storageHelperImage"},
		"it needs other files":  {"package nodeimage\nconst defaultStorageManifest = other", "undefined: other"},
		"it is no Go":           {"manifest", "expected 'package'"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "const_storage.go")
			testutil.WriteFile(t, file, tc.source)
			_, err := storageIn(file)
			testutil.CheckError(t, err, tc.wantErr)
		})
	}
	_, err := storageIn(filepath.Join(t.TempDir(), "const_storage.go"))
	testutil.CheckError(t, err, "reading kind's StorageClass")
}

// Kubernetes' packages compile once for podnet and the provisioner.
func TestTheProvisionerHasTheModulesOfThisRepository(t *testing.T) {
	root := layout.MustFind().Root
	versions := func(file string) map[string]string {
		data, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		mod, err := modfile.Parse(file, data, nil)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, r := range mod.Require {
			found[r.Mod.Path] = r.Mod.Version
		}
		return found
	}
	want := versions("go.mod")
	for module, version := range versions("hack/images/local-path-provisioner/go.mod") {
		if strings.HasPrefix(module, "k8s.io/") && version != want[module] {
			t.Errorf("%s %s, want %s", module, version, want[module])
		}
	}
}
