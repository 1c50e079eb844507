package pipeline

import (
	"os/exec"
	"slices"
	"testing"

	"podenv.dev/hack/internal/testutil"
)

func TestImagesOfSpecsAreThoseListedAndThoseInTheirText(t *testing.T) {
	dir := t.TempDir()
	testutil.WriteFile(t, dir+"/test/e2e/pods.go", `image := "registry.k8s.io/e2e-test-images/agnhost:2.55"`)
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "--all"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
	}
	got := imageRefs(t.Context(), dir, "W1124 Unable to find in-cluster config: https://127.0.0.1:6443\nregistry.k8s.io/pause:3.10\nregistry.k8s.io/e2e-test-images/agnhost:2.55\n")
	if want := []string{"registry.k8s.io/e2e-test-images/agnhost:2.55", "registry.k8s.io/pause:3.10"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
