package pipeline

import (
	"maps"
	"testing"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/series"
)

func TestAClusterOfV129HasPoliciesOn(t *testing.T) {
	for _, minor := range []string{"v1.29", "v1.30", "v1.33"} {
		want, err := featuregates.Enabled(minor)
		if err != nil {
			t.Fatal(err)
		}
		if minor == "v1.29" {
			want["ValidatingAdmissionPolicy"] = true
		}
		if got, err := (&Pipeline{Series: series.Series{Name: minor}}).Gates(); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: the gates are %v (%v), want %v", minor, got, err, want)
		}
	}
	if got, err := (&Pipeline{Series: series.Series{Name: "v1.29"}, Stock: true}).Gates(); err != nil || len(got) > 0 {
		t.Errorf("stock: the gates are %v (%v), want none", got, err)
	}
}
