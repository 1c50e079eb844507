package suite

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// follow returns the log of a step that shows the progress of specs with the output.
func follow(t *testing.T, output string) string {
	t.Helper()
	dir := t.TempDir()
	step := progress.New(io.Discard, false, 80, dir).Step("e2e")
	if _, err := io.WriteString(run.Lines(Follow(step)), output); err != nil {
		t.Fatal(err)
	}
	if err := step.End(nil); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "e2e.log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(log)
}

// output is what Ginkgo prints with -v while specs run in parallel.
const output = `Running Suite: EnvFiles - /suite
Will run 3 of 70 specs
Running in parallel across 2 processes
------------------------------
[SynchronizedBeforeSuite] PASSED [0.5 seconds]
[SynchronizedBeforeSuite]
------------------------------
• [4.123 seconds]
[sig-node] EnvFiles [Feature:EnvFiles] the user stories: story 1, it runs [sig-node, Feature:EnvFiles]
------------------------------
• [FAILED] [90.000 seconds]
[sig-node] EnvFiles [Feature:EnvFiles] row 3 [It] when there is no file [sig-node, Feature:EnvFiles]
------------------------------
S [SKIPPED] [0.001 seconds]
[sig-node] EnvFiles [Feature:EnvFiles] kubectl explain [sig-node, Feature:EnvFiles]
`

func TestFollowerSaysHowFarTheSpecsAre(t *testing.T) {
	log := follow(t, output)
	for _, want := range []string{
		"# 1 of 3 specs, last: EnvFiles the user stories: story 1, it runs",
		"# 2 of 3 specs, 1 failed, last: EnvFiles row 3 when there is no file",
		"# 3 of 3 specs, 1 failed, last: EnvFiles kubectl explain",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("%q is not in the log:\n%s", want, log)
		}
	}
}

// alone is what Ginkgo prints with -v while specs run one at a time.
const alone = `Will run 2 of 4 specs
------------------------------
[SynchronizedBeforeSuite]
/suite/entry.go:60
[SynchronizedBeforeSuite] PASSED [4.260 seconds]
------------------------------
[sig-node] Version skew [Serial] the first cell [Disruptive]
/suite/skew_test.go:56
  STEP: walk 2 of 20, step 1: to stock:v1.32 @ 11/21/26 15:12:43.149
• [58.925 seconds]
------------------------------
[sig-node] Version skew [Serial] [Disruptive] the second cell
/suite/skew_test.go:56
`

func TestFollowerNamesTheSpecThatRunsAlone(t *testing.T) {
	log := follow(t, alone)
	for _, want := range []string{"# 0 of 2 specs, now: Version skew the first cell\n",
		"# 0 of 2 specs, now: Version skew the first cell: walk 2 of 20, step 1: to stock:v1.32\n", "# 1 of 2 specs\n", "# 1 of 2 specs, now: Version skew the second cell"} {
		if !strings.Contains(log, want) {
			t.Errorf("%q is not in the log:\n%s", want, log)
		}
	}
}
