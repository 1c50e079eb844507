package proof

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow has the fields of a GitHub Actions workflow that docs/ci.md uses.
type workflow struct {
	Jobs map[string]struct {
		Steps []struct {
			Run, Uses string
			With      struct{ Path string }
		}
	}
}

var (
	yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")
	suiteFlag = regexp.MustCompile(`podenv e2e --suite (\w+)`)
)

// runWorkflow runs the commands of the workflow in docs/ci.md in the clone dir, on the cluster
// called name, and checks that the workflow uploads the results of each suite.
func runWorkflow(t *testing.T, dir, name string) {
	page, err := os.ReadFile(filepath.Join(dir, "docs", "ci.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := yamlBlock.FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/ci.md has no YAML")
	}
	var w workflow
	if err := yaml.Unmarshal(block[1], &w); err != nil {
		t.Fatal(err)
	}
	var suites, uploads []string
	for _, step := range w.Jobs["e2e"].Steps {
		if strings.HasPrefix(step.Uses, "actions/upload-artifact@") {
			uploads = strings.Fields(step.With.Path)
		}
		if step.Run == "" {
			continue
		}
		if m := suiteFlag.FindStringSubmatch(step.Run); m != nil {
			suites = append(suites, m[1])
		}
		cmd := podenvIn(ctx, dir)
		cmd.Path, cmd.Args = "/bin/bash", []string{"bash", "-c", strings.ReplaceAll(step.Run, "podenv e2e", "podenv e2e --name "+name)}
		cmd.Env = append(cmd.Env, "NAME="+name)
		mustRun(t, cmd)
	}
	if len(suites) == 0 {
		t.Error("the workflow runs no suite")
	}
	for _, suite := range suites {
		found := false
		for _, path := range uploads {
			_, err := os.Stat(filepath.Join(dir, path, suite+".xml"))
			found = found || err == nil
		}
		if !found {
			t.Errorf("no %s.xml in the folders that the workflow uploads: %q", suite, uploads)
		}
	}
}
