package featuregates_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podenv.dev/featuregates"
)

// noSpecs are rows that no spec shows yet.
var noSpecs = map[string]string{
	"TEP-0101:per task": "no spec gives two tasks of one pipeline different values",
}

func TestEachRowOfADocumentHasASpec(t *testing.T) {
	files, err := filepath.Glob("../test/e2e/*/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	texts := map[string]string{} // of the files that show rows, by document
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range featuregates.Documents {
			if strings.Contains(string(text), `suite.Shows("`+d.Name+`"`) {
				texts[d.Name] += string(text)
			}
		}
	}
	for _, d := range featuregates.Documents {
		for _, row := range d.Rows {
			_, known := noSpecs[d.Name+":"+row[0]]
			if shown := strings.Contains(texts[d.Name], `"`+row[0]+`"`); shown == known {
				t.Errorf("%s, row %q: a spec shows it: %t, listed as one without: %t", d.Name, row[0], shown, known)
			}
		}
	}
}

func TestAnUnknownRowIsNoLabel(t *testing.T) {
	if got := featuregates.Row("KEP-3721", "7"); got != "KEP-3721:7" {
		t.Errorf("label %q", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a row that the document does not have is a label")
		}
	}()
	featuregates.Row("KEP-3721", "8")
}
