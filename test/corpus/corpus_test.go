package corpus

import (
	"slices"
	"strings"
	"testing"
)

func TestCorpusOfEnvFiles(t *testing.T) {
	accepted, err := Accepted(EnvFiles)
	if err != nil {
		t.Fatal(err)
	}
	refused, err := Refused(EnvFiles)
	if err != nil {
		t.Fatal(err)
	}

	var names []string
	for _, c := range slices.Concat(accepted, refused) {
		// The file's name is how a person finds the pod that a test speaks of.
		if want := c.Name; len(want) < 64 && c.Pod.Name != want {
			t.Errorf("%s: the pod is called %q", c.Name, c.Pod.Name)
		}
		if c.Pod.Namespace != "" {
			t.Errorf("%s: the pod has a namespace: leave it to who creates the pod", c.Name)
		}
		if slices.Contains(names, c.Name) {
			t.Errorf("%s: there is an accepted and a refused pod of this name", c.Name)
		}
		names = append(names, c.Name)
	}
}

func TestParse(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
	testCases := []struct {
		name string
		data string
		want []string // fields
		// of upstream's API, if they differ
		wantUpstream []string
		accepts      string
		wantErr      string
	}{
		{name: "a pod without a comment", data: pod},
		{name: "a pod with one comment that names no field", data: "# Why.\n" + pod},
		{name: "a refused pod with two errors", data: "# Why.\n#\n# field: spec.a[0]\n# field: spec.b\n" + pod, want: []string{"spec.a[0]", "spec.b"}},
		{name: "two errors of one field", data: "# field: spec.a\n# field: spec.a\n" + pod, want: []string{"spec.a", "spec.a"}},
		{name: "a field that the API does not know", data: pod + "spec: {volume: []}\n", wantErr: "unknown field"},
		{name: "a refused pod with other errors upstream", data: "# field: spec.a\n# upstream field: spec.b\n# upstream field: spec.c\n" + pod,
			want: []string{"spec.a"}, wantUpstream: []string{"spec.b", "spec.c"}},
		{name: "a refused pod that upstream accepts", data: "# field: spec.a\n# upstream accepts: Why.\n" + pod,
			want: []string{"spec.a"}, wantUpstream: []string{}, accepts: "Why."},
		{name: "upstream accepts what it refuses", data: "# field: spec.a\n# upstream field: spec.a\n# upstream accepts: Why.\n" + pod, wantErr: "leave out"},
		{name: "upstream accepts what is accepted", data: "# upstream accepts: Why.\n" + pod, wantErr: "leave out"},
		{name: "another kind", data: "apiVersion: v1\nkind: Secret\n", wantErr: "want a v1 Pod"},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			c, err := parse("a", []byte(tc.data))
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("want an error with %q, got: %v", tc.wantErr, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tc.wantUpstream == nil {
				tc.wantUpstream = tc.want
			}
			if !slices.Equal(c.Fields, tc.want) || !slices.Equal(c.UpstreamFields, tc.wantUpstream) || c.UpstreamAccepts != tc.accepts {
				t.Errorf("want fields %q, upstream %q (accepts: %q), got %+v", tc.want, tc.wantUpstream, tc.accepts, c)
			}
		})
	}
}
