package envfile

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestScriptWritesBothForms compares what a shell writes with the file that the
// parsers of both forms are tested with.
func TestScriptWritesBothForms(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.env")
	script := "set -e\nport=5432\n" + Script(file, "HOST=db.example.com", "PORT=$port")
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

func TestQuoteValues(t *testing.T) {
	for text, want := range map[string]string{
		"A=1\nB=2\n":                   "A='1'\nB='2'\n",
		"A=1":                          "A='1'",
		"A=b=c\n":                      "A='b=c'\n",
		"A=\n=3\n":                     "A=''\n='3'\n",
		"\n# B=2\nno declaration\nA=1": "\n# B=2\nno declaration\nA='1'",
	} {
		if got := quoteValues(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
