package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/series"
)

// TestTheHarnessNamesNoFeature holds the packages of the harness to the declarations: what knows a
// feature by name is featuregates/, the patches, the suites and the command line.
func TestTheHarnessNamesNoFeature(t *testing.T) {
	root := repo(t)
	words := []string{"fileKeyRef", "FileKeyRef", "podpreset", "settings.k8s.io", "env file"}
	states, err := featuregates.In("v1.37")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range states {
		words = append(words, string(s.Name))
	}
	names := regexp.MustCompile(`(?i)\b(` + strings.Join(words, "|") + `)`)
	for _, folder := range []string{"hack/internal", "test/e2e/internal"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if found := names.FindAll(text, -1); len(found) > 0 {
				t.Errorf("%s names a feature: %q", path, found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestAFifthFeatureIsOneDeclaration adds a made-up feature to featuregates/, and nothing else:
// the clusters, node operations, suites, skew matrix and examples follow.
func TestAFifthFeatureIsOneDeclaration(t *testing.T) {
	const fifth = "PodTides"
	defer featuregates.Add(fifth, featuregates.Feature{
		Components: []string{"kube-apiserver", "kubelet"},
		Specs:      featuregate.VersionedSpecs{{Version: version.MustParse("1.33"), PreRelease: featuregate.Alpha}},
		Switches:   featuregates.Switches{RuntimeConfig: []string{"tides.podenv.dev/v1alpha1"}, AdmissionPlugins: []string{fifth}},
		Suites:     []string{"tides"},
		Probe: &featuregates.Probe{
			Pod: "tides.yaml", Saw: func(featuregates.Sight) string { return "high" },
			Want: func(c featuregates.Cell) featuregates.Outcome {
				return featuregates.Outcome{Created: string(c.APIServer.Gate(fifth)), Stored: string(c.Kubelet.Gate(fifth))}
			},
		},
		Stored:   &featuregates.Stored{Rules: map[featuregates.GateState]featuregates.Rules{featuregates.GateOff: {Shows: true}}},
		Examples: func(string) []featuregates.Example { return []featuregates.Example{{Pod: "tides.yaml"}} },
	})()

	p := pipeline.Pipeline{Layout: layout.Layout{Root: repo(t)}, Series: series.Series{Name: "v1.33"}}
	gates, err := p.Gates()
	if err != nil || !gates[fifth] {
		t.Errorf("gates of a new cluster: %v (%v)", gates, err)
	}
	if s := featuregates.SwitchesOf(gates); !slices.Contains(s.RuntimeConfig, "tides.podenv.dev/v1alpha1") || !slices.Contains(s.AdmissionPlugins, fifth) {
		t.Errorf("switches of a new cluster: %+v", s)
	}
	on := featuregates.SetInCommand("kube-apiserver", []string{"kube-apiserver"}, gates)
	off := featuregates.SetInCommand("kube-apiserver", on, map[string]bool{})
	if !strings.Contains(strings.Join(on, " "), "--runtime-config=settings.k8s.io/v1alpha1=true,tides.podenv.dev/v1alpha1=true") || len(off) != 1 {
		t.Errorf("the API server's command with the gates on: %q, and off again: %q", on, off)
	}
	if got := featuregates.OfSuite("tides"); !slices.Equal(got, []string{fifth}) {
		t.Errorf("gates that the suite requires: %q", got)
	}
	offGates, suites, err := featuregates.Off("v1.33")
	if on, known := offGates[fifth]; err != nil || on || !known || !slices.Contains(suites, "tides") {
		t.Errorf("runs with the gates off: %v in the suites %q (%v)", offGates, suites, err)
	}
	stored, err := featuregates.StoredIn("v1.33")
	if err != nil || !slices.ContainsFunc(stored, func(s featuregates.State) bool { return s.Name == fifth && s.Stored.Rules[featuregates.GateOff].Shows }) {
		t.Errorf("objects that API servers with and without the gate store: %v (%v)", stored, err)
	}
	probed, err := featuregates.Probed("v1.33")
	if err != nil || !slices.ContainsFunc(probed, func(s featuregates.State) bool { return s.Name == fifth }) {
		t.Fatalf("the skew matrix has %v (%v)", probed, err)
	}
	apiServers, kubelets := featuregates.Sides("v1.33", []string{"v1.32"})
	for _, s := range probed {
		if s.Name != fifth {
			continue
		}
		matrix := featuregates.Matrix(fifth, apiServers, kubelets, func(c featuregates.Cell) string { return s.Probe.Want(c).String() })
		if !strings.Contains(matrix, "| patched, on | on / unknown | on / unknown | on / off | on / on |") {
			t.Errorf("the skew matrix is\n%s", matrix)
		}
	}
	examples, err := featuregates.Examples("v1.33", gates)
	if err != nil || !slices.ContainsFunc(examples, func(e featuregates.Example) bool { return e.Gate == fifth }) {
		t.Errorf("examples of a new cluster: %v (%v)", examples, err)
	}
	if older, err := featuregates.Enabled("v1.32"); err != nil || older[fifth] {
		t.Errorf("gates of a release before it: %v (%v)", older, err)
	}
}

func repo(t *testing.T) string {
	t.Helper()
	l, err := layout.Find(".")
	if err != nil {
		t.Fatal(err)
	}
	return l.Root
}
