package verify

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/layout"
)

func TestFailingTests(t *testing.T) {
	failed := &junit.Message{Message: "failed"}
	got := failingTests([]junit.Case{
		{ClassName: "example.test/a", Name: "TestGood"},
		{ClassName: "example.test/a", Name: "TestBad", Failure: failed},
		{ClassName: "example.test/a", Name: "TestTable/one/row", Error: failed},
		// What gotestsum reports of a package that does not compile.
		{ClassName: "", Name: "TestMain", Failure: failed},
	})
	if diff := cmp.Diff(map[string][]string{"example.test/a": {"TestBad", "TestTable"}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A package that does not compile stays a failure, whatever the stock release does.
func TestACompileErrorIsNotExcused(t *testing.T) {
	broken := []junit.Case{{Name: "TestMain", Failure: &junit.Message{Message: "does not compile"}}}
	// Without a test to try, the stock release is not looked at.
	cases, err := excuse(t.Context(), layout.Layout{Root: t.TempDir()}, nil, broken, nil)
	if err != nil {
		t.Fatal(err)
	}
	if counts := junit.Count(cases); counts != (junit.Counts{Failed: 1}) {
		t.Errorf("counted %v, want 1 failed", counts)
	}
}
