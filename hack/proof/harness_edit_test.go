package proof

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podenv.dev/hack/internal/series"
)

func TestEditKubeletPatchLeavesALineThatAnotherPatchHas(t *testing.T) {
	const kubelet = "+++ b/pkg/kubelet/kubelet.go\n"
	dir := t.TempDir()
	for name, text := range map[string]string{
		"0001-first.patch":  kubelet + "+\treturn fmt.Errorf(\"shared\")\n+\treturn fmt.Errorf(\"own\")\n",
		"0002-second.patch": kubelet + " \treturn fmt.Errorf(\"shared\")\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := editKubeletPatch(series.Series{Dir: dir}, time.Unix(0, 7)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "0001-first.patch"))
	if err != nil {
		t.Fatal(err)
	}
	if want := kubelet + "+\treturn fmt.Errorf(\"shared\")\n+\treturn fmt.Errorf(\"at 7: own\")\n"; string(data) != want {
		t.Errorf("got\n%swant\n%s", data, want)
	}
	if err := os.Remove(filepath.Join(dir, "0001-first.patch")); err != nil {
		t.Fatal(err)
	}
	if err := editKubeletPatch(series.Series{Dir: dir}, time.Unix(0, 7)); err == nil || !strings.Contains(err.Error(), "no patch") {
		t.Errorf("got %v for a series without such a line", err)
	}
}
