package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podenv.dev/hack/internal/jsonout"
	"podenv.dev/hack/internal/remedy"
)

var sample = []Finding{
	{Check: "engine", Status: OK, Found: "Docker 20.10"},
	{Check: "package installation", Status: Warn, Found: "not root,\n\tand no sudo", Remedy: "run <it>\nas root"},
	{Check: "go", Status: Fail, Found: "none", Remedy: "install it"},
}

func TestFindingsAreWritten(t *testing.T) {
	for name, test := range map[string]struct {
		write    func(io.Writer, []Finding) error
		findings []Finding
		want     string
	}{
		"as a table with each remedy below": {WriteTable, sample, "" +
			"ok    engine                Docker 20.10\n" +
			"warn  package installation  not root, and no sudo\n" +
			"                            → run <it> as root\n" +
			"fail  go                    none\n" +
			"                            → install it\n"},
		"as one line each for awk": {WriteTSV, sample, "" +
			"engine\tok\tDocker 20.10\t\n" +
			"package installation\twarn\tnot root, and no sudo\trun <it> as root\n" +
			"go\tfail\tnone\tinstall it\n"},
		"as a JSON array that is empty, not null": {jsonout.WriteList[Finding], nil, "[]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := test.write(&b, test.findings); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, b.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestJSONHasAllThatWasFound(t *testing.T) {
	var b bytes.Buffer
	if err := jsonout.WriteList[Finding](&b, sample); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b.Bytes(), []byte(`\u003c`)) {
		t.Errorf("a remedy cannot be read: %s", b.Bytes())
	}
	var got []Finding
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWritersReportAWriterThatFails(t *testing.T) {
	full := errors.New("full")
	for name, write := range map[string]func(io.Writer, []Finding) error{"table": WriteTable, "tsv": WriteTSV, "json": jsonout.WriteList[Finding]} {
		if err := write(failingWriter{full}, sample); !errors.Is(err, full) {
			t.Errorf("%s: error %v, want %v", name, err, full)
		}
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestOnlyAFailFails(t *testing.T) {
	for name, test := range map[string]struct {
		findings []Finding
		want     bool
	}{
		"nothing":                 {nil, false},
		"a warning among what is": {sample[:2], false},
		"one failure":             {sample, true},
	} {
		if got := Failed(test.findings); got != test.want {
			t.Errorf("Failed of %s is %v, want %v", name, got, test.want)
		}
	}
}

func TestFailureHasTheErrorsOwnRemedy(t *testing.T) {
	host := remedy.New(errors.New("wrong"), "fix it")
	want := Finding{"c", Fail, "wrong", "fix it"}
	if got := failed("c", host, "other"); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	want = Finding{"c", Fail, "plain", "other"}
	if got := failed("c", errors.New("plain"), "other"); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
