package proof

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/poll"
)

// goTestOf runs go test in a module of one file.
func goTestOf(t *testing.T, source string) ([]junit.Case, error) {
	t.Helper()
	return goTestIn(t.Context(), t, t.TempDir(), source)
}

// goTestIn is goTestOf in the empty folder dir.
func goTestIn(ctx context.Context, t *testing.T, dir, source string) ([]junit.Case, error) {
	t.Helper()
	writeModule(t, dir, source)
	return goTest(ctx, io.Discard, dir, moduleEnv, "./...")
}

// moduleEnv is the environment of go commands in a module of writeModule.
var moduleEnv = []string{"GOFLAGS=-mod=mod", "GOWORK=off"}

// writeModule writes a module of one file of tests to dir.
func writeModule(t *testing.T, dir, source string) {
	t.Helper()
	for name, text := range map[string]string{"go.mod": "module example.test\n\ngo 1.21\n", "a_test.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestGoTestCountsPassedFailedAndSkipped(t *testing.T) {
	cases, err := goTestOf(t, `package a
import "testing"
func TestGood(t *testing.T) {}
func TestBad(t *testing.T) { t.Error("too bad") }
func TestLater(t *testing.T) { t.Skip("not now") }
`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := junit.Count(cases), (junit.Counts{Passed: 1, Failed: 1, Skipped: 1}); got != want {
		t.Errorf("counted %v, want %v", got, want)
	}
	for name, why := range map[string]string{"TestBad": "too bad", "TestLater": "not now"} {
		for _, c := range cases {
			if c.Name == name && !strings.Contains(resultOf(c).Error(), why) {
				t.Errorf("%s ended with %v, want %q in it", name, resultOf(c), why)
			}
		}
	}
	if diff := cmp.Diff(map[string][]string{"example.test": {"TestBad"}}, failingTests(cases)); diff != "" {
		t.Errorf("failing tests, -want +got:\n%s", diff)
	}
}

func TestGoTestFailsWhereNothingWasProven(t *testing.T) {
	for name, test := range map[string]struct {
		source string
		noTest bool
	}{
		"no tests":         {"package a\n", true},
		"all are skipped":  {"package a\nimport \"testing\"\nfunc TestX(t *testing.T) { t.Skip(\"without -etcd\") }\n", true},
		"does not compile": {"package a\nimport \"testing\"\nfunc TestX(t *testing.T) { undefined() }\n", false},
		"a panic at start": {"package a\nfunc init() { panic(1) }\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			cases, err := goTestOf(t, test.source)
			if err == nil && junit.Count(cases).Failed == 0 || errors.Is(err, errNoTest) != test.noTest {
				t.Errorf("got %v and the error %v", cases, err)
			}
			// No result on the stock release can excuse it.
			if failing := failingTests(cases); len(failing) > 0 {
				t.Errorf("failing tests: %v", failing)
			}
		})
	}
}

// cleansUp is a test that cleans up after a signal, as tests with clusters do. It prints something
// after its parent has ended, or has had time to.
const cleansUp = `package a
import ("os"; "os/signal"; "syscall"; "testing"; "time")
func TestCleansUp(t *testing.T) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	parent := os.Getppid()
	os.WriteFile("started", nil, 0o644)
	<-asked
	for end := time.Now().Add(time.Second); os.Getppid() == parent && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	t.Log("cleaning up")
	os.WriteFile("cleaned", nil, 0o644)
}
`

func TestGoTestWaitsForTestsThatCleanUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir := t.TempDir()
	go func() {
		defer cancel()
		poll.Until(ctx, time.Minute, func(context.Context) error { //nolint:errcheck // the test fails then
			_, err := os.Stat(filepath.Join(dir, "started"))
			return err
		})
	}()
	if _, err := goTestIn(ctx, t, dir, cleansUp); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "cleaned")); err != nil {
		t.Errorf("go test has ended, and its test has not cleaned up: %v", err)
	}
}

func TestUnitTestsThatRootSkipsHaveFailed(t *testing.T) {
	const (
		noTool = "the file system cannot be made: no mkfs.xfs"
		tree   = "PODENV_TREE names no assembled tree"
	)
	// Go's cache does not see the file, as it is not in the module.
	dir := t.TempDir()
	tool, module := filepath.Join(dir, "mkfs"), filepath.Join(dir, "module")
	if err := os.Mkdir(module, 0o755); err != nil {
		t.Fatal(err)
	}
	writeModule(t, module, `package a
import ("os"; "testing")
func TestGood(t *testing.T) {}
func TestXFS(t *testing.T) { if _, err := os.Stat("`+tool+`"); err != nil { t.Skip("`+noTool+`") } }
func TestTree(t *testing.T) { t.Skip("`+tree+`") }
`)
	c := &check{T: t, ctx: t.Context()}
	expect := func(root bool, want junit.Counts) {
		t.Helper()
		cases, err := c.unitCases(module, moduleEnv, root, "./...")
		if got := junit.Count(cases); err != nil || got != want {
			t.Errorf("root %t: %v, %v; want %v", root, got, err, want)
		}
	}
	expect(false, junit.Counts{Passed: 1, Skipped: 2})
	expect(true, junit.Counts{Passed: 1, Failed: 1, Skipped: 1})
	if err := os.WriteFile(tool, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	expect(true, junit.Counts{Passed: 2, Skipped: 1})

	for reason, want := range map[string]bool{
		tree: true, noTool: false,
		"without -podenv.series: podenv test runs the proofs":                                      true,
		"the file system cannot be mounted: exit status 32: unknown filesystem type 'btrfs'":       true,
		"the file system cannot be mounted: exit status 32: mount failed: Operation not permitted": false,
		"an overlay cannot be mounted: operation not permitted":                                    false,
		"taking on other credentials needs root":                                                   false,
	} {
		if got := unitSkips.MatchString(reason); got != want {
			t.Errorf("%s: may be skipped: %t, want %t", reason, got, want)
		}
	}
}
