package proof

import (
	"fmt"
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/suite"
	"podenv.dev/test/e2e/options"
)

// skips lists the reasons for which specs of the suites are skipped on some series, the specs that they
// hold for, and on which series. All other specs must run: the checks give the suites all that they need.
var skips = []struct {
	reason, spec *regexp.Regexp
	on           func(suite.Options) (bool, error)
}{
	{regexp.MustCompile(`the gate \w+ is on in `), regexp.MustCompile(gateOffSpecs), func(o suite.Options) (bool, error) { return o.Focus != gateOffSpecs, nil }},
	// On the cluster with the gates off, its name says that it has the same result.
	{regexp.MustCompile(`the gate \w+ is off in `), regexp.MustCompile(`with the gate on .*` + gateOffSpecs), func(o suite.Options) (bool, error) { return o.Focus == gateOffSpecs, nil }},
	{regexp.MustCompile(`the API of EnvFiles is this branch's`), anySpec, upstreamEnvFiles(false)},
	{regexp.MustCompile(`the API of EnvFiles is upstream's|upstream's API accepts it`), anySpec, upstreamEnvFiles(true)},
	{regexp.MustCompile(`read env files of the form VAR=VALUE$`), anySpec, quotedEnvFiles(false)},
	{regexp.MustCompile(`read env files of the form VAR='VALUE'$`), anySpec, quotedEnvFiles(true)},
	{regexp.MustCompile(`the gate Relaxed\w+ is locked`), anySpec, func(o suite.Options) (bool, error) {
		state, _ := featuregates.StateIn(o.Minor, featuregates.RelaxedEnvironmentVariableValidation)
		return state.Spec.LockToDefault, nil
	}},
	{regexp.MustCompile(`does not serve ValidatingAdmissionPolicy`), anySpec, before("v1.30")},
	{regexp.MustCompile(`does not serve pods/resize`), anySpec, before("v1.33")},
	{regexp.MustCompile(`no release of the minor after`), anySpec, func(o suite.Options) (bool, error) { return len(o.Newer) == 0, nil }},
	{regexp.MustCompile(`stock \S+ does not know fileKeyRef`), anySpec, before("v1.33")},
	{regexp.MustCompile(`(the container runtime|the kernel) of node `), regexp.MustCompile(`user namespace`), anySeries}, // the host decides
}

// gateOffSpecs matches the names of the specs for a cluster whose gates are off.
const gateOffSpecs = "with the gate off"

var anySpec = regexp.MustCompile("")

func anySeries(suite.Options) (bool, error) { return true, nil }

func upstreamEnvFiles(want bool) func(suite.Options) (bool, error) {
	return func(o suite.Options) (bool, error) {
		has, err := hasUpstreamEnvFiles(o.Minor)
		return has == want, err
	}
}

func quotedEnvFiles(want bool) func(suite.Options) (bool, error) {
	return func(o suite.Options) (bool, error) {
		quoted, err := featuregates.QuotesEnvFiles(o.Minor)
		return quoted == want, err
	}
}

func before(minor string) func(suite.Options) (bool, error) {
	return func(o suite.Options) (bool, error) {
		v, err := version.ParseGeneric(o.Minor)
		return err == nil && v.LessThan(version.MustParseGeneric(minor)), err
	}
}

// requireRun turns specs that were skipped, and must run on the series, into failures.
func requireRun(cases []junit.Case, o suite.Options) error {
	for i, test := range cases {
		if test.Skipped == nil {
			continue
		}
		allowed := false
		for _, skip := range skips {
			if skip.reason.MatchString(test.Skipped.Message) && skip.spec.MatchString(test.Name) {
				on, err := skip.on(o)
				if err != nil {
					return err
				}
				allowed = allowed || on
			}
		}
		if !allowed {
			cases[i].Skipped, cases[i].Failure = nil, &junit.Message{Message: fmt.Sprintf("must run on %s, and was skipped: %s", o.Minor, test.Skipped.Message)}
		}
	}
	return nil
}

// of are the options of a suite on a series.
func of(minor string) suite.Options {
	return suite.Options{Options: options.Options{Minor: minor}}
}

// with is o for some specs, or with a newer minor to go to.
func with(o suite.Options, focus, newer string) suite.Options {
	o.Focus = focus
	if newer != "" {
		o.Newer = []string{newer}
	}
	return o
}

func TestRequireRun(t *testing.T) {
	for name, test := range map[string]struct {
		spec, reason string
		options      suite.Options
		allowed      bool
	}{
		"no kubectl":                             {"kubectl prints", "skipped - no kubectl of the series under test: give --podenv.kubectl", of("v1.33"), false},
		"no podenv":                              {"kubectl podenv expand", "skipped - the nodes cannot be operated: give --podenv.cli", of("v1.33"), false},
		"no reason":                              {"a", "", of("v1.33"), false},
		"a gate that is off":                     {"a", "skipped - the gate EnvFiles is off in the API server", of("v1.33"), false},
		"a spec for the gate off":                {"with the gate off in kubelets a", "skipped - the gate A is on in the kubelet of node b", of("v1.33"), true},
		"a gate that should be off":              {"with the gate off in kubelets a", "skipped - the gate A is on in the kubelet of node b", with(of("v1.33"), gateOffSpecs, ""), false},
		"another spec, for the same reason":      {"a", "skipped - the gate A is on in the kubelet of node b", of("v1.33"), false},
		"the gate on, with the gates off":        {"with the gate on every form has the result that it has with the gate off", "skipped - the gate A is off in the kubelet of node b", with(of("v1.33"), gateOffSpecs, ""), true},
		"the gate on, with the gates on":         {"with the gate on every form has the result that it has with the gate off", "skipped - the gate A is off in the kubelet of node b", of("v1.33"), false},
		"our API where it is ours":               {"a", "skipped - the API of EnvFiles is upstream's in the release of the API server", of("v1.33"), false},
		"our API where it is upstream's":         {"a", "skipped - the API of EnvFiles is upstream's in the release of the API server", of("v1.34"), true},
		"upstream's API where it is upstream's":  {"a", "skipped - the API of EnvFiles is this branch's in the release of the API server", of("v1.34"), false},
		"upstream's API where it is ours":        {"a", "skipped - the API of EnvFiles is this branch's in the release of the API server", of("v1.33"), true},
		"quotes where files have none":           {"a", "skipped - kubelets of the release of the API server read env files of the form VAR=VALUE", of("v1.34"), true},
		"quotes where files have them":           {"a", "skipped - kubelets of the release of the API server read env files of the form VAR=VALUE", of("v1.35"), false},
		"no quotes where files have them":        {"a", "skipped - kubelets of the release of the API server read env files of the form VAR='VALUE'", of("v1.35"), true},
		"a locked gate":                          {"a", "skipped - the gate RelaxedEnvironmentVariableValidation is locked in the release", of("v1.34"), true},
		"a gate that is not locked":              {"a", "skipped - the gate RelaxedEnvironmentVariableValidation is locked in the release", of("v1.33"), false},
		"policies of v1.29":                      {"a", "skipped - the API server does not serve ValidatingAdmissionPolicy", of("v1.29"), true},
		"policies of v1.30":                      {"a", "skipped - the API server does not serve ValidatingAdmissionPolicy", of("v1.30"), false},
		"resize of v1.32":                        {"a", "skipped - the API server does not serve pods/resize", of("v1.32"), true},
		"resize of v1.33":                        {"a", "skipped - the API server does not serve pods/resize", of("v1.33"), false},
		"the minor after the newest":             {"a", "skipped - patches/ has no release of the minor after v1.37", of("v1.37"), true},
		"the minor after another":                {"a", "skipped - patches/ has no release of the minor after v1.33", with(of("v1.33"), "", "v1.34"), false},
		"a next minor without the field":         {"a", "skipped - stock v1.33 does not know fileKeyRef", of("v1.32"), true},
		"a next minor with the field":            {"a", "skipped - stock v1.34 does not know fileKeyRef", of("v1.33"), false},
		"a host without user namespaces":         {"as root of a user namespace", "skipped - the kernel of node a, 5.10, is older than 6.3", of("v1.33"), true},
		"a spec that needs no user namespace":    {"as root", "skipped - the kernel of node a, 5.10, is older than 6.3", of("v1.33"), false},
		"a pod that only upstream's API accepts": {"a", "skipped - upstream's API accepts it, see upstreamapi_test.go: why", of("v1.35"), true},
	} {
		t.Run(name, func(t *testing.T) {
			cases := []junit.Case{{Name: "passed"}, {Name: test.spec, Skipped: &junit.Message{Message: test.reason}}}
			if err := requireRun(cases, test.options); err != nil {
				t.Fatal(err)
			}
			if got := !failed(cases[1]); got != test.allowed || failed(cases[0]) {
				t.Errorf("may be skipped: %t, want %t", got, test.allowed)
			}
		})
	}
}
