package audit

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"podenv.dev/hack/internal/jsonout"
)

// printable are all characters that a relaxed name may have.
var printable = func() string {
	var b strings.Builder
	for c := byte(' '); c <= '~'; c++ {
		if c != '=' {
			b.WriteByte(c)
		}
	}
	return b.String()
}()

var written = []Finding{
	{Namespace: "ns", Kind: "Deployment", Name: "web", Container: "c", Variable: "PLAIN", What: FileKeyRef},
	{Namespace: "ns", Kind: "Pod", Name: "web-1", Owner: "ReplicaSet/web", Container: "c", Variable: " two  spaces ", What: RelaxedName},
	{Namespace: "ns", Kind: "Pod", Name: "web-1", Owner: "ReplicaSet/web", Container: "c", Variable: printable, What: RelaxedPrefix},
}

func TestWriteTableQuotesWhatNeedsIt(t *testing.T) {
	text := write(t, WriteTable, written[:2])
	if want := strings.Join([]string{
		`NAMESPACE  KIND        NAME   CONTAINER  VARIABLE         WHAT`,
		`ns         Deployment  web    c          PLAIN            fileKeyRef`,
		`ns         Pod         web-1  c          " two  spaces "  relaxed name`,
		``,
	}, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if text := write(t, WriteTable, nil); text != "" {
		t.Errorf("nothing found: got %q", text)
	}
}

func TestWriteTSVKeepsEveryByteOfAName(t *testing.T) {
	rows := strings.Split(strings.TrimSuffix(write(t, WriteTSV, written), "\n"), "\n")
	if len(rows) != len(written) {
		t.Fatalf("got %d rows, want %d", len(rows), len(written))
	}
	for i, f := range written {
		want := []string{f.Namespace, f.Kind, f.Name, f.Container, f.Variable, f.What}
		if got := strings.Split(rows[i], "\t"); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	odd := write(t, WriteTSV, []Finding{{Variable: "a\tb\nc"}})
	if strings.Count(odd, "\t") != 5 || strings.Count(odd, "\n") != 1 {
		t.Errorf("a name that neither rule accepts breaks the row: %q", odd)
	}
}

func TestWriteJSON(t *testing.T) {
	var got []Finding
	if err := json.Unmarshal([]byte(write(t, jsonout.WriteList[Finding], written)), &got); err != nil || !slices.Equal(got, written) {
		t.Errorf("got %+v, %v", got, err)
	}
	if text := write(t, jsonout.WriteList[Finding], nil); text != "[]\n" {
		t.Errorf("nothing found: got %q, want an empty array", text)
	}
}

func write(t testing.TB, writer func(io.Writer, []Finding) error, findings []Finding) string {
	t.Helper()
	var out bytes.Buffer
	if err := writer(&out, findings); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
