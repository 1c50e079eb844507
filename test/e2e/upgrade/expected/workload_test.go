package expected

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"podenv.dev/pkg/kubelet/envfile"
)

// TestGenerationsAreReadAlikeInBothForms runs the scripts of the workload, with an end to the
// writer's loop.
func TestGenerationsAreReadAlikeInBothForms(t *testing.T) {
	dir := t.TempDir()
	local := strings.NewReplacer("/data", dir, "$(hostname)", "pod", "usleep 100000", "[ $n -lt 11 ] || exit 0")
	for _, step := range []struct{ name, script, prints, value string }{
		{"set-up", setupScript, "0\n", "pod.0"},
		{"writer", writerScript, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n", "pod.11"},
		{"set-up after a reboot", setupScript, "", "pod.11"},
		{"writer that goes on", writerScript, "12\n", "pod.12"},
	} {
		out, err := exec.Command("sh", "-ec", local.Replace(step.script)).CombinedOutput()
		if err != nil || string(out) != step.prints {
			t.Fatalf("%s: %v, printed %q, want %q", step.name, err, out, step.prints)
		}
		data, err := os.ReadFile(filepath.Join(dir, "config.env"))
		if err != nil {
			t.Fatal(err)
		}
		for _, syntax := range []envfile.Syntax{envfile.DotEnv, envfile.SingleQuoted} {
			values, err := envfile.Parse(data, keys, envfile.Options{Syntax: syntax})
			if err != nil {
				t.Fatalf("%s: syntax %v: %v", step.name, syntax, err)
			}
			for _, key := range keys {
				if got, err := values.Lookup(key); err != nil || got != step.value {
					t.Errorf("%s: syntax %v: %s is %q (%v), want %q", step.name, syntax, key, got, err, step.value)
				}
			}
		}
	}
}
