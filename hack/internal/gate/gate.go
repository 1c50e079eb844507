// Package gate lists the feature gates of a release, from the release's own files and programs and
// without a line of code for any of them: stage and default, which components know the gate, and
// which of the release's end-to-end specs are about it.
package gate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/node"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// Gate is a feature gate of a release.
type Gate struct {
	Name string `json:"name"`
	// Stage is ALPHA, BETA, GA or DEPRECATED.
	Stage   string `json:"stage"`
	Default bool   `json:"default"`
	Locked  bool   `json:"locked"`
	// Since is the minor that the release's own list has the gate from; patched gates have the
	// minor of the series. It is empty where the release has no such list, before v1.32.
	Since string `json:"since,omitempty"`
	// Components are the programs that accept the gate.
	Components []string `json:"components"`
	// Specs is the number of the release's end-to-end specs with the label FeatureGate:NAME, and
	// CanRun of those that need nothing that a cluster of podenv lacks. Needs says what the others
	// need, with their number.
	Specs  int            `json:"specs"`
	CanRun int            `json:"canRun"`
	Needs  map[string]int `json:"needs,omitempty"`
}

// components are the programs that have feature gates.
var components = append(slices.Clone(node.Components), "kube-proxy")

// List returns the gates of the release in the tree of r, sorted by name. It starts each component
// of r for a moment, without a cluster, and asks the specs for their names.
func List(ctx context.Context, r *build.Result, specs *build.Specs, step *progress.Step) ([]Gate, error) {
	help, err := run.Command(ctx, r.Binaries["kube-controller-manager"], "--help").Output()
	if err != nil {
		return nil, err
	}
	gates, err := read(r.Tree.Dir, r.Tree.Series.Name, help)
	if err != nil {
		return nil, err
	}
	set := map[string]bool{}
	for _, g := range gates {
		set[g.Name] = g.Default
	}
	for _, c := range components {
		step.Now("asking %s", c)
		known, err := node.Build{Component: c, Binary: r.Binaries[c]}.KnownGates(ctx, set)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
		for i, g := range gates {
			if _, ok := known[g.Name]; ok {
				gates[i].Components = append(gates[i].Components, c)
			}
		}
	}
	step.Now("listing the specs")
	names, err := run.Command(ctx, filepath.Join(specs.Dir, "e2e.test"), "--list-tests").Output()
	if err != nil {
		return nil, err
	}
	countSpecs(gates, names)
	return gates, nil
}

// lists are the files of a release that list its gates, the newest minors' first.
var lists = []string{
	"test/compatibility_lifecycle/reference/versioned_feature_list.yaml",
	"test/compatibility_lifecycle/reference/unversioned_feature_list.yaml",
	"test/featuregates_linter/test_data/versioned_feature_list.yaml",
	"test/featuregates_linter/test_data/unversioned_feature_list.yaml",
}

// read returns the gates that the release in the folder dir lists. A release before v1.32 has no list:
// then they are those in help, the output of --help of a component, which has none that are GA.
func read(dir, minor, help string) ([]Gate, error) {
	at, err := version.ParseGeneric(minor)
	if err != nil {
		return nil, err
	}
	byName := map[string]Gate{}
	for _, file := range lists {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var listed []struct {
			Name           string
			VersionedSpecs []struct {
				Default, LockToDefault bool
				PreRelease, Version    string
			}
		}
		if err := yaml.Unmarshal(data, &listed); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, l := range listed {
			for _, spec := range l.VersionedSpecs {
				g := Gate{Name: l.Name, Stage: strings.ToUpper(cmp.Or(spec.PreRelease, "GA")), Default: spec.Default, Locked: spec.LockToDefault, Since: byName[l.Name].Since}
				if spec.Version != "" {
					since, err := version.ParseGeneric(spec.Version)
					if err != nil {
						return nil, fmt.Errorf("%s: %s: %w", file, l.Name, err)
					}
					if at.LessThan(since) {
						continue
					}
					g.Since = cmp.Or(g.Since, "v"+spec.Version)
				}
				byName[l.Name] = g
			}
		}
	}
	for name, g := range node.GatesInHelp(help) {
		if _, ok := byName[name]; !ok {
			byName[name] = Gate{Name: name, Stage: g.Stage, Default: g.Default}
		}
	}
	delete(byName, "AllAlpha")
	delete(byName, "AllBeta")
	return slices.SortedFunc(maps.Values(byName), func(a, b Gate) int { return strings.Compare(a.Name, b.Name) }), nil
}

var label = regexp.MustCompile(`\[FeatureGate:(\w+)\]`)

// needs are what specs need that podenv's clusters lack, by what is in their names.
var needs = []struct {
	name *regexp.Regexp
	what string
}{
	{regexp.MustCompile(`\[Feature:Windows\]|\(ntfs\)`), "a Windows node"},
	{regexp.MustCompile(`\[Driver: [^\]]*(gke|aws|azure|vsphere|cinder|gce)[^\]]*\]|\[Feature:(LoadBalancer|GCEAlphaFeature)\]`), "a cloud"},
	{regexp.MustCompile(`\[Feature:SELinux`), "a node with SELinux"},
	{regexp.MustCompile(`\[Driver: csi-hostpath\]|CSI Mock|\[FeatureGate:MutableCSINodeAllocatableCount\]`), "the images of a CSI driver"},
	{regexp.MustCompile(`\[Driver: `), "a storage driver"},
	{regexp.MustCompile(`\[Feature:(DynamicResourceAllocation|DRA)|device compatibility groups`), "the image of a DRA driver"},
	{regexp.MustCompile(`\[Feature:(GPU|NVIDIA)|\[Feature:DevicePlugin`), "a device"},
	{regexp.MustCompile(`\[Feature:HPA\]`), "metrics-server"},
}

// countSpecs counts the specs of each gate in the output of --list-tests.
func countSpecs(gates []Gate, names string) {
	for line := range strings.Lines(names) {
		for _, m := range label.FindAllStringSubmatch(line, -1) {
			if i := slices.IndexFunc(gates, func(g Gate) bool { return g.Name == m[1] }); i >= 0 {
				gates[i].count(line)
			}
		}
	}
}

// count counts the spec called name.
func (g *Gate) count(name string) {
	g.Specs++
	for _, need := range needs {
		if need.name.MatchString(name) {
			if g.Needs == nil {
				g.Needs = map[string]int{}
			}
			g.Needs[need.what]++
			return
		}
	}
	g.CanRun++
}

// Find returns the gate called name, if a walk can turn it on and off.
func Find(gates []Gate, name string) (Gate, error) {
	i := slices.IndexFunc(gates, func(g Gate) bool { return g.Name == name })
	if i < 0 {
		return Gate{}, fmt.Errorf("the release has no gate %q%s: podenv gate list lists its gates", name, nearest(gates, name))
	}
	switch g := gates[i]; {
	case g.Locked:
		return Gate{}, fmt.Errorf("the gate %s is locked to %t in the release, and cannot be turned on and off: name a minor in which it is not with --series", name, g.Default)
	case !g.switched():
		return Gate{}, fmt.Errorf("the gate %s is known by %s, and a walk turns gates on and off in %s: choose one of theirs, podenv gate list says who knows which", name, g.knownBy(), strings.Join(node.Components, ", "))
	default:
		return g, nil
	}
}

// switched reports whether g is a gate of a component in which a walk turns gates on and off.
func (g Gate) switched() bool {
	return slices.ContainsFunc(g.Components, func(c string) bool { return slices.Contains(node.Components, c) })
}

func (g Gate) ofAPIServer() bool { return slices.Contains(g.Components, "kube-apiserver") }

func (g Gate) knownBy() string { return cmp.Or(strings.Join(g.Components, ", "), "no component") }

// CanWalk reports whether --all walks g, a gate of minor: alpha or beta, not locked, with specs that can
// run or probes that this branch declares; has is false for a gate that has none of these.
func CanWalk(minor string, g Gate) (open, has bool) {
	_, own, err := declared(minor, g.Name)
	open = !g.Locked && (g.Stage == "ALPHA" || g.Stage == "BETA")
	return open, g.switched() && (g.CanRun > 0 || err == nil && len(own) > 0)
}

// WalkAll calls walk for each of gates that --all walks, with a context that ends after limit, and returns the
// walks. It goes on after an error, which the walk has as its Problem, unless ctx has ended.
func WalkAll(ctx context.Context, minor string, gates []Gate, limit time.Duration, walk func(ctx context.Context, g Gate, has bool) (*Walk, error)) ([]*Walk, error) {
	var walks []*Walk
	for _, g := range gates {
		open, has := CanWalk(minor, g)
		if !open {
			continue
		}
		limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf(tooLong, limit))
		w, err := walk(limited, g, has)
		cancel()
		if walks = append(walks, w); err != nil && ctx.Err() != nil {
			return walks, err
		}
	}
	return walks, nil
}

// dependency is what a component says of gates that need others.
var dependency = regexp.MustCompile(`(\w+) is enabled, but depends on features that are disabled: \[([^\]]*)\]`)

// Depends sets which gates that of w needs, and which need it, by what a kube-apiserver, the executable
// apiServer, says when it starts with the gate on and off.
func (w *Walk) Depends(ctx context.Context, apiServer string) error {
	for i, others := range []*[]string{&w.NeededBy, &w.Needs} {
		set := map[string]bool{w.Gate.Name: i == 1}
		for found := 0; found < len(set); {
			found = len(set)
			_, err := node.Build{Component: "kube-apiserver", Binary: apiServer}.KnownGates(ctx, set)
			for _, m := range dependency.FindAllStringSubmatch(fmt.Sprint(err), -1) {
				for _, other := range strings.Fields(m[1+i]) {
					*others, set[other] = add(*others, other), i == 1
				}
			}
			if err != nil && len(set) == found {
				return fmt.Errorf("the API server does not start with %s, so that no walk can turn the gate on and off; podenv node gate tries other gates with it: %w", featuregates.Flag(set), err)
			}
		}
	}
	return nil
}

// Others are patterns of the names of specs that need another gate, too, which is off.
func (w *Walk) Others(gates []Gate) (patterns []string) {
	for _, g := range gates {
		if !g.Default && g.Name != w.Gate.Name && !slices.Contains(w.Needs, g.Name) {
			patterns = append(patterns, `\[FeatureGate:`+g.Name+`\]`)
		}
	}
	return patterns
}

// nearest proposes up to three gates whose names are like name, by what cobra proposes of verbs.
func nearest(gates []Gate, name string) string {
	verbs := cobra.Command{SuggestionsMinimumDistance: max(2, len(name)/4)}
	for _, g := range gates {
		verbs.AddCommand(&cobra.Command{Use: g.Name, Run: func(*cobra.Command, []string) {}})
	}
	like := verbs.SuggestionsFor(name)
	if len(like) == 0 {
		return ""
	}
	return ", did you mean " + strings.Join(like[:min(3, len(like))], ", ") + "?"
}

// lacks are what specs of g need that podenv's clusters lack, with the number of these specs.
func (g Gate) lacks() (lacks []string) {
	for what, n := range g.Needs {
		lacks = append(lacks, fmt.Sprintf("%s: %d", what, n))
	}
	slices.Sort(lacks)
	return lacks
}

// Columns is the heading of Fields.
const Columns = "GATE\tSTAGE\tDEFAULT\tLOCKED\tSINCE\tSPECS\tCAN RUN\tTHE OTHERS NEED\tCOMPONENTS"

// Fields are what a list of gates has of each.
func (g Gate) Fields() []any {
	locked := map[bool]string{true: "yes", false: "no"}[g.Locked]
	return []any{g.Name, g.Stage, g.Default, locked, cmp.Or(g.Since, "-"), g.Specs, g.CanRun,
		cmp.Or(strings.Join(g.lacks(), ", "), "-"), cmp.Or(strings.Join(g.Components, ","), "-")}
}
