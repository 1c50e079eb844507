package junit

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestReadCountsEveryShapeOfReport(t *testing.T) {
	for name, text := range map[string]string{
		"one suite": `<testsuite><testcase name="a"/><testcase name="b"><failure message="no"/></testcase>` +
			`<testcase name="c"><skipped message="why"/></testcase></testsuite>`,
		"suites": `<testsuites><testsuite><testcase name="a"/></testsuite><testsuite>` +
			`<testcase name="b"><error message="no"/></testcase><testcase name="c"><skipped/></testcase></testsuite></testsuites>`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "junit.xml")
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			cases, err := Read(path)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := Count(cases), (Counts{1, 1, 1}); got != want {
				t.Errorf("counted %v, want %v", got, want)
			}
		})
	}
}

func TestReadRefusesATruncatedReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "junit.xml")
	if err := os.WriteFile(path, []byte(`<testsuite><testcase name="a">`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil {
		t.Error("no error")
	}
}

func TestWriteIsReadBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "junit.xml")
	cases := []Case{{Name: "a"}, {Name: "b", Failure: &Message{Message: "no <&>", Text: "log"}}, {Name: "c", Skipped: &Message{Message: "why"}}}
	if err := Write(path, "checks", time.Second, cases); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if Count(got) != (Counts{1, 1, 1}) || got[1].Failure.Message != "no <&>" {
		t.Errorf("read %+v", got)
	}
}

func TestCountsPrintTheClosingLine(t *testing.T) {
	if got := (Counts{3, 0, 1}).String(); got != "3 passed, 0 failed, 1 skipped" {
		t.Errorf("got %q", got)
	}
}
