package jsonout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteList(t *testing.T) {
	for name, test := range map[string]struct {
		rows []map[string]string
		want string
	}{
		"no rows":                     {nil, "[]\n"},
		"rows, and signs as they are": {[]map[string]string{{"a": "<1> & 2"}}, "[\n  {\n    \"a\": \"<1> & 2\"\n  }\n]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := WriteList(&out, test.rows); err != nil || out.String() != test.want {
				t.Errorf("%v, wrote %q, want %q", err, out.String(), test.want)
			}
		})
	}
}

func TestSaveMakesTheFolderAndKeepsWhatItCannotReplace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a", "b.json")
	if err := Save(file, map[string]string{"a": "<1>"}); err != nil {
		t.Fatal(err)
	}
	if err := Save(file, func() {}); err == nil {
		t.Error("a function was saved")
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "{\n  \"a\": \"<1>\"\n}\n" {
		t.Errorf("%v, saved %q", err, got)
	}
}

func TestWriteTable(t *testing.T) {
	var out strings.Builder
	if err := WriteTable(&out, "A\tB", []string{"long"}, func(s string) []any { return []any{s, len(s)} }); err != nil || out.String() != "A     B\nlong  4\n" {
		t.Errorf("%v, wrote %q", err, out.String())
	}
}

func TestWriteTSV(t *testing.T) {
	var out strings.Builder
	fields := func(n int64) []any { return []any{"a", n, n > 1} }
	if err := WriteTSV(&out, []int64{1, 2}, fields); err != nil || out.String() != "a\t1\tfalse\na\t2\ttrue\n" {
		t.Errorf("%v, wrote %q", err, out.String())
	}
}
