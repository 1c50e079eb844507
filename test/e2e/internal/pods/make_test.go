package pods

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestWriteEnvFileWritesBothForms compares what a shell writes with the file that the
// parsers of both forms are tested with.
func TestWriteEnvFileWritesBothForms(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.env")
	script := "set -e\nport=5432\n" + WriteEnvFile(file, "HOST=db.example.com", "PORT=$port")
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tested, err := os.ReadFile("../../../corpus/both-forms.env")
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAll(tested, nil)
	if string(got) != string(want) {
		t.Errorf("wrote\n%swant\n%s", got, want)
	}
}
