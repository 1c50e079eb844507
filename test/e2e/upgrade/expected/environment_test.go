package expected

import (
	"maps"
	"strings"
	"testing"
	"time"

	"podenv.dev/featuregates"
)

var (
	began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// Generation n of the pods a and b was announced n seconds after the beginning. The log
	// with generation 60 is lost.
	written = func() (all []Writing) {
		for n := range 62 {
			if n == 60 {
				continue
			}
			for _, pod := range []string{"a", "b"} {
				all = append(all, Writing{Pod: pod, Generation: n, Announced: at(n)})
			}
		}
		return all
	}()
	patchedOnly = []Since{{began, []featuregates.Build{featuregates.Patched}}}
	stockOnly   = []Since{{began, []featuregates.Build{featuregates.Stock}}}
)

func at(second int) time.Time { return began.Add(time.Duration(second) * time.Second) }

// run is a run of a container of pod a with the two keys' values, and with changes; a
// variable that is changed to unset is not set.
func run(container string, second int, first, last string, changes map[string]string) Run {
	env := map[string]string{"PATH": "/bin", "HOSTNAME": "a", "KUBERNETES_PORT": "443", "SELF": container, "FIRST": first, "LAST": last}
	maps.Copy(env, changes)
	maps.DeleteFunc(env, func(_, value string) bool { return value == unset })
	return Run{Pod: "a", Container: container, Printed: at(second), Env: env}
}

const unset = "(unset)"

func TestCheck(t *testing.T) {
	empty := map[string]string{"MISSING": ""}
	takesOver := func(second int) []Since {
		return []Since{{began, []featuregates.Build{featuregates.Stock}}, {at(10), []featuregates.Build{featuregates.Stock, featuregates.Patched}}, {at(second), []featuregates.Build{featuregates.Patched}}}
	}
	for name, test := range map[string]struct {
		kubelets []Since
		runs     []Run
		want     string // in the error; empty: none
	}{
		"values of one generation":               {patchedOnly, []Run{run(Regular, 9, "a.7", "a.7", nil)}, ""},
		"generations that go on":                 {patchedOnly, []Run{run(Regular, 9, "a.8", "a.8", nil), run(Regular, 30, "a.29", "a.29", nil)}, ""},
		"another container has an older one":     {patchedOnly, []Run{run(Regular, 9, "a.9", "a.9", nil), run(Sidecar, 9, "a.3", "a.3", nil)}, ""},
		"one whose announcement is lost":         {patchedOnly, []Run{run(Regular, 9, "a.60", "a.60", nil)}, ""},
		"the same one again, at once":            {patchedOnly, []Run{run(Regular, 9, "a.8", "a.8", nil), run(Regular, 9, "a.8", "a.8", nil)}, ""},
		"all are empty on a stock kubelet":       {stockOnly, []Run{run(Regular, 9, "", "", empty)}, ""},
		"a stock kubelet starts what lacks keys": {stockOnly, []Run{run(incomplete, 9, "", "", empty)}, ""},
		"either, while one kubelet follows the other": {takesOver(20), []Run{
			run(Regular, 11, "", "", empty), run(Regular, 12, "a.11", "a.11", nil), run(Sidecar, 13, "", "", empty)}, ""},

		"keys of two generations":                 {patchedOnly, []Run{run(Regular, 9, "a.7", "a.8", nil)}, "of another generation"},
		"a generation that was never written":     {patchedOnly, []Run{run(Regular, 9, "a.99", "a.99", nil)}, "has never written"},
		"a generation below the first":            {patchedOnly, []Run{run(Regular, 9, "a.-1", "a.-1", nil)}, "has never written"},
		"no generation at all":                    {patchedOnly, []Run{run(Regular, 9, "7", "7", nil)}, "has never written"},
		"the file of another pod":                 {patchedOnly, []Run{run(Regular, 9, "b.7", "b.7", nil)}, "has never written"},
		"a generation goes backwards":             {patchedOnly, []Run{run(Regular, 2, "a.2", "a.2", nil), run(Regular, 9, "a.1", "a.1", nil)}, "generation 1 after generation 2"},
		"it goes backwards, and was read late":    {patchedOnly, []Run{run(Regular, 9, "a.1", "a.1", nil), run(Regular, 2, "a.2", "a.2", nil)}, "generation 1 after generation 2"},
		"a later run has what was there long ago": {patchedOnly, []Run{run(Regular, 9, "a.3", "a.3", nil), run(Regular, 30, "a.3", "a.3", nil)}, "generation 7 was there"},
		"a key is not set":                        {patchedOnly, []Run{run(Regular, 9, unset, "a.7", nil)}, "FIRST is not set"},
		"an optional key is not set":              {patchedOnly, []Run{run(Regular, 9, "a.7", unset, nil)}, "LAST is not set"},
		"an optional key is empty":                {patchedOnly, []Run{run(Regular, 9, "a.7", "", nil)}, `LAST is ""`},
		"an optional missing key is set":          {patchedOnly, []Run{run(Regular, 9, "a.7", "a.7", empty)}, "the file has no key NEVER"},
		"what lacks a key has started":            {patchedOnly, []Run{run(incomplete, 9, "a.7", "a.7", nil)}, "which MISSING requires"},
		"the environment of another container":    {patchedOnly, []Run{run(Regular, 9, "a.7", "a.7", map[string]string{"SELF": Sidecar})}, `SELF is "sidecar"`},
		"a variable that nobody asked for":        {patchedOnly, []Run{run(Regular, 9, "a.7", "a.7", map[string]string{"OTHER": "1"})}, "nobody asked for the variable OTHER"},
		"a container that nobody knows":           {patchedOnly, []Run{run("other", 9, "a.7", "a.7", nil)}, "nobody knows"},
		"a value from a stock kubelet":            {stockOnly, []Run{run(Regular, 9, "a.7", "a.7", empty)}, `FIRST is "a.7"`},
		"a variable is not set by a stock one":    {stockOnly, []Run{run(Regular, 9, "", "", nil)}, `MISSING is "", set: false`},
		"a literal is empty from a stock one":     {stockOnly, []Run{run(Regular, 9, "", "", map[string]string{"SELF": "", "MISSING": ""})}, `SELF is ""`},
		"empty from a patched kubelet":            {patchedOnly, []Run{run(Regular, 9, "", "", nil)}, `FIRST is ""`},
		"half of each kubelet, between the two":   {takesOver(20), []Run{run(Regular, 15, "a.14", "", empty)}, "as of a stock kubelet"},
		"empty, after the patched one took over":  {takesOver(20), []Run{run(Regular, 21, "", "", empty)}, `FIRST is ""`},
		"a value, before the patched one came":    {takesOver(20), []Run{run(Regular, 9, "a.8", "a.8", nil)}, "as of a stock kubelet"},
		"a run before any kubelet":                {[]Since{{at(10), []featuregates.Build{featuregates.Patched}}}, []Run{run(Regular, 9, "a.7", "a.7", nil)}, "no kubelet was there"},
		"one wrong run among right ones": {patchedOnly, []Run{
			run(Regular, 1, "a.1", "a.1", nil), run(Regular, 5, "a.4", "a.5", nil), run(Regular, 9, "a.9", "a.9", nil)}, "run of 00:00:05.000"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Checker{Env: EnvOfContainers(), Kubelets: test.kubelets}.Check(written, test.runs)
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}
