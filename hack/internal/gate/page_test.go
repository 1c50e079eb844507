package gate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"podenv.dev/hack/internal/conformance"
)

func TestAPageAnswersOnlyWhatWasMeasured(t *testing.T) {
	w := Walk{Gate: Gate{Name: "Middle", Stage: "BETA", Components: []string{"kube-apiserver", "kubelet"}}, Release: "v1.33.13", Command: "podenv gate walk Middle"}
	page := func() string {
		t.Helper()
		return w.Markdown()
	}
	if got := page(); strings.Count(got, unknown) != 25 || !strings.Contains(got, "By the gate `Middle`. These accept it, and the walk does not tell which of them act on it: kube-apiserver, kubelet.") {
		t.Errorf("before anything was measured:\n%s", got)
	}
	w.On = []conformance.Row{{Spec: "a", State: conformance.Passed}, {Spec: "b", State: conformance.Failed, Why: "no"}}
	w.Again = w.On[:1]
	w.Objects, w.Dropped, w.Refused = map[string]int{"Pod": 2}, []string{"Pod: spec.middle"}, []string{"Pod: Invalid"}
	w.Stored = &Stored{Objects: 4, Unwritten: 1, Pods: 2, Again: true, Updated: 2, Hidden: []string{"Pod: spec.middle"}, Written: []string{"Pod: spec.middle"}, Restarted: []string{"p/c"}}
	w.Metrics = []string{"kubelet: middle_total"}
	// That no field was dropped says nothing of objects that were refused.
	w.Dropped = nil
	if got := page(); strings.Contains(got, "stores all of their fields") || !strings.Contains(got, "leaves no field out of those that it takes.\n\nIt refuses some:") {
		t.Errorf("with refused objects alone:\n%s", got)
	}
	w.Dropped = []string{"Pod: spec.middle"}
	got := page()
	for _, want := range []string{
		"Pod (2). An API server with the gate off leaves these fields out of new ones:\n\n- Pod: spec.middle", "It refuses some:\n\n- Pod: Invalid",
		"4 objects were stored with the gate on. While it was off, these fields were not shown, or differed:\n\n- Pod: spec.middle",
		"Updates of a label that were accepted: 2.\n", "Objects that nobody had written to were as before: 1.", "that were written to meanwhile: a label by the walk, or a status by a component:\n\n- Pod: spec.middle",
		"with the gate on: 1 passed, 1 failed, 0 left out. After the gate had been off: 1 passed, 0 failed, 0 left out.",
		"2 containers", "- p/c", "These, but no pod started while the gate was off, so that some may be of starting pods:\n\n- kubelet: middle_total", "- b: no",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if n := strings.Count(got, unknown); n != 18 {
		t.Errorf("%d questions without an answer, want 18:\n%s", n, got)
	}
	w.Older, w.OlderRelease = &Stored{Objects: 3, Unwritten: 1, Again: true, Lost: []string{"Pod: spec.older"}, Refused: []string{"Pod: unknown"}}, "v1.32.1"
	w.Servers = &Servers{Objects: 6, Lost: []string{"Pod: spec.servers"}, Hidden: []string{"Pod: spec.hidden"}}
	w.Skew = map[string][]conformance.Row{"v1.31.1": {w.On[0], {Spec: "old", State: conformance.Failed, Why: "no"}, {Spec: "old", State: conformance.Failed, Why: "at another time"}}, "v1.32.1": w.On[:1]}
	w.Costs = []Cost{{What: "requests per pod", Off: []float64{1, 2, 6}, On: []float64{4}}}
	got = page()
	for _, want := range []string{
		"API server were v1.32.1 for a while. 3 objects", "label that were accepted: 0.\n\nSome were refused:\n\n- Pod: unknown", "- Pod: spec.older\n\nSo were those that were written to meanwhile: 2.\n\nOf 0 containers none", "Back on v1.33.13: Fields were lost, or differ, of objects that nobody had written to:\n\n- Pod: spec.older",
		"older kubelets, each with its first reason:\n\n- b: no\n- old: no\n", "- v1.32.1: 1 passed, 0 failed, 0 left out\n- v1.31.1: 1 passed, 2 failed", "updated a label of in turn: 6. ", "Fields were lost, or differ:\n\n- Pod: spec.servers\n\nThe one with the gate off did not show these, or otherwise:\n\n- Pod: spec.hidden\n\nNo request was refused.",
		"with 10 pods that do not use it (those that do are refused with the gate off) each", "| requests per pod | 3 (1 to 6) | 4 (4 to 4) |", "These, of which some may be of what happened by chance with it on only:\n\n- kubelet: middle_total",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "at another time") {
		t.Errorf("a spec that failed twice stands there twice:\n%s", got)
	}
	w.Refused = []string{"Service: Invalid"}
	if got := page(); !strings.Contains(got, "with 10 pods of a spec each") {
		t.Errorf("with pods that are taken:\n%s", got)
	}
	if n := strings.Count(got, unknown); n != 14 {
		t.Errorf("%d questions without an answer, want 14:\n%s", n, got)
	}
}

// TestTheTableHasARowForEachWalk, with what it found or why it found nothing.
func TestTheTableHasARowForEachWalk(t *testing.T) {
	dir := t.TempDir()
	done := &Walk{Gate: Gate{Name: "Done", Stage: "BETA"}, Release: "v1", Build: "image kubelet", Complete: true, Dropped: []string{"a"}, Objects: map[string]int{"Pod": 1},
		On: []conformance.Row{{State: conformance.Passed}}, Stored: &Stored{Objects: 2, Again: true, Lost: []string{"a"}},
		Servers: &Servers{Objects: 1}, Skew: map[string][]conformance.Row{"v0": {{State: conformance.Failed}}},
		Costs: []Cost{{What: "processor time of kube-apiserver per pod, in s", Off: []float64{1}, On: []float64{2}}}}
	if err := done.Save(dir); err != nil {
		t.Fatal(err)
	}
	if Load(dir, "image of the same release", 0) != nil || Load(t.TempDir(), "", 0) != nil {
		t.Error("a walk of another build, or none, was read")
	}
	begun := &Walk{Release: "v1", Build: "image kubelet", Problem: "interrupted\nhere"}
	if err := begun.Save(filepath.Join(dir, "begun")); err != nil || Load(filepath.Join(dir, "begun"), begun.Build, 0) != nil {
		t.Errorf("a walk that was not completed was read, %v", err)
	}
	if page, err := os.ReadFile(filepath.Join(dir, "begun", "walk.md")); err != nil || !strings.Contains(string(page), "**The walk was not completed.** interrupted\nhere") {
		t.Errorf("%v, its page is\n%s", err, page)
	}
	begun.On = done.On
	if err := begun.End(t.Context(), dir, errors.New("no cluster")); err == nil || Load(dir, done.Build, 0) == nil {
		t.Errorf("a walk that was not completed replaced a complete one, %v", err)
	}
	if page, err := os.ReadFile(filepath.Join(dir, "unfinished", "walk.md")); err != nil || !strings.Contains(string(page), "no cluster") {
		t.Errorf("%v, its page is\n%s", err, page)
	}
	var out strings.Builder
	walks := []*Walk{Load(dir, done.Build, 0), {Gate: Gate{Name: "None", Stage: "ALPHA", Needs: map[string]int{"a cloud": 2}}}, {Gate: Gate{Name: "Broken", Stage: "ALPHA"}, Problem: "no | node\nmore"}}
	if err := WriteMarkdownTable(&out, walks); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| `Done` | beta | 1 passed, 0 failed, 0 left out | 1 dropped, 0 refused | 0 hidden, 1 lost, 0 refused, 0 of 0 restarted | 0 lost, 0 refused | v0: 0 passed, 1 failed, 0 left out | - | 1 (1 to 1) off, 2 (2 to 2) on |\n",
		"| `None` | alpha | no specs that can run<br>a cloud: 2 |", "| `Broken` | alpha | not walked: no \\| node |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// TestWhatWasNotComparedIsNoAnswer: neither a page nor a row is better than what is behind it.
func TestWhatWasNotComparedIsNoAnswer(t *testing.T) {
	api, stored := []string{"kube-apiserver", "kubelet"}, &Stored{Objects: 2, Pods: 1, Again: true}
	for name, test := range map[string]struct {
		walk  Walk
		wants []string
		not   string
	}{
		"objects that the API server takes no second time": {
			Walk{Gate: Gate{Components: api}, Stored: stored, Objects: map[string]int{}},
			[]string{"no object of the specs could be created again", "| - | 0 hidden"}, "stores all of their fields"},
		"a gate of kubelets": {Walk{Gate: Gate{Components: []string{"kubelet"}}, Stored: stored}, []string{"are stored?** The API server does not know the gate.", "off?** The API server does not know the gate.", "| - | 0 hidden"}, ""},
		"no update":          {Walk{Gate: Gate{Components: api}, Stored: stored}, []string{"Updates of a label that were accepted: 0.\n\n**", "So were those that were written to meanwhile: 2.\n"}, ""},
		"no pod": {Walk{Gate: Gate{Components: api}, Stored: &Stored{Objects: 1, Again: true}, Older: &Stored{Objects: 1, Again: true}},
			[]string{"run?** " + unknown, "Of 0 containers none", "| 0 hidden, 0 lost, 0 refused, 0 of 0 restarted |"}, ""},
		"a walk that ended while the gate was off": {Walk{Gate: Gate{Components: api}, Stored: &Stored{Objects: 1, Pods: 1}},
			[]string{"again?** " + unknown, "run?** " + unknown}, "No container was started again"},
		"specs that did not run": {Walk{Gate: Gate{Components: api}}, []string{"tests of it?** " + unknown, "fail?** " + unknown}, "No spec of it failed"},
		"specs that skipped themselves": {Walk{Gate: Gate{Components: api}, Stored: stored, On: []conformance.Row{{State: conformance.LeftOut}}},
			[]string{"0 passed, 0 failed, 1 left out", "fail?** " + unknown}, "No spec of it failed"},
		"specs that could not run": {Walk{Gate: Gate{Needs: map[string]int{"a cloud": 2}}, Stored: stored, Ended: []string{"1 of 2 specs ran"}},
			[]string{"that ran here.\n\nSome did not run, because they need what is not here:\n\n- a cloud: 2\n", "Not all specs ran:\n\n- 1 of 2 specs ran\n"}, ""},
		"kubelets without specs": {Walk{Gate: Gate{Components: api}, Stored: stored, Skew: map[string][]conformance.Row{"v1": nil}},
			[]string{"older kubelets?** " + unknown, " - | - | - | - |"}, "v1: 0 passed"},
	} {
		var out strings.Builder
		out.WriteString(test.walk.Markdown())
		if err := WriteMarkdownTable(&out, []*Walk{&test.walk}); err != nil {
			t.Fatal(err)
		}
		for _, want := range test.wants {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", name, want, &out)
			}
		}
		if test.not != "" && strings.Contains(out.String(), test.not) {
			t.Errorf("%s: %q in\n%s", name, test.not, &out)
		}
	}
}

func TestCanWalk(t *testing.T) {
	of := Gate{Name: "Other", Stage: "BETA", Components: []string{"kubelet"}, CanRun: 1}
	for name, test := range map[string]struct {
		change    func(*Gate)
		open, has bool
	}{
		"specs":           {func(*Gate) {}, true, true},
		"locked":          {func(g *Gate) { g.Locked = true }, false, true},
		"GA":              {func(g *Gate) { g.Stage = "GA" }, false, true},
		"no specs":        {func(g *Gate) { g.CanRun = 0 }, true, false},
		"declared probes": {func(g *Gate) { g.Name, g.CanRun = "EnvFiles", 0 }, true, true},
		"no component":    {func(g *Gate) { g.Components = nil }, true, false},
		"the scheduler's": {func(g *Gate) { g.Components = []string{"kube-scheduler"} }, true, true},
		"another's":       {func(g *Gate) { g.Components = []string{"kube-proxy"} }, true, false},
	} {
		g := of
		test.change(&g)
		if open, has := CanWalk("v1.33", g); open != test.open || has != test.has {
			t.Errorf("%s: got %t, %t", name, open, has)
		}
	}
}

// TestWalkAllEndsAWalkAtItsLimit: what it has found is kept, with the reason, and the next gate is walked.
func TestWalkAllEndsAWalkAtItsLimit(t *testing.T) {
	dir := t.TempDir()
	of := func(name string) Gate {
		return Gate{Name: name, Stage: "BETA", Components: []string{"kubelet"}, CanRun: 1}
	}
	gates := []Gate{of("Hangs"), {Name: "Old", Stage: "GA"}, of("Next"), {Name: "None", Stage: "ALPHA"}}
	limit := 50 * time.Millisecond
	walks, err := WalkAll(t.Context(), "v1.33", gates, limit, func(ctx context.Context, g Gate, has bool) (*Walk, error) {
		w := &Walk{Gate: g}
		if !has {
			return w, nil
		}
		w.On = []conformance.Row{{State: conformance.Passed}}
		if g.Name == "Next" {
			return w, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
			t.Error("the walk goes on after its limit")
		}
		return w, w.End(ctx, dir, fmt.Errorf("waiting for pods: %w", ctx.Err()))
	})
	if err != nil || len(walks) != 3 {
		t.Fatalf("%d walks, %v; want those of 3 gates", len(walks), err)
	}
	if Load(dir, "", limit) == nil || Load(dir, "", 2*limit) != nil {
		t.Error("it must be walked again for longer than that alone")
	}
	page, err := os.ReadFile(filepath.Join(dir, "walk.md"))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := WriteMarkdownTable(&out, walks); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"**The walk was not completed.** it took longer than 50ms, which --limit sets: waiting for pods: context deadline exceeded\n", "with the gate on: 1 passed,",
		"| `Hangs` | beta | 1 passed, 0 failed, 0 left out<br>not completed: it took longer than 50ms", "| `Next` | beta | 1 passed, 0 failed, 0 left out |", "| `None` | alpha | no specs",
	} {
		if text := string(page) + out.String(); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestWalkAllEndsAtCtrlC(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	g := Gate{Name: "A", Stage: "BETA", Components: []string{"kubelet"}, CanRun: 1}
	walks, err := WalkAll(ctx, "v1.33", []Gate{g, g}, time.Minute, func(ctx context.Context, g Gate, _ bool) (*Walk, error) {
		cancel()
		w := &Walk{Gate: g}
		return w, w.End(ctx, t.TempDir(), ctx.Err())
	})
	if !errors.Is(err, context.Canceled) || len(walks) != 1 || walks[0].Problem != "context canceled" {
		t.Errorf("%d walks, %v; want the first one and %v", len(walks), err, context.Canceled)
	}
}

func TestFind(t *testing.T) {
	gates := []Gate{
		{Name: "InPlacePodVerticalScaling", Components: []string{"kubelet"}}, {Name: "Locked", Locked: true, Components: []string{"kubelet"}},
		{Name: "InPlacePodLevelResources", Components: []string{"kubelet"}}, {Name: "Nobody"},
		{Name: "KubeletCgroupDriver"}, {Name: "KubeletEnsureSecretPulled"}, {Name: "KubeletInUserNamespace"}, {Name: "KubeletTracing"},
		{Name: "EnvFiles"}, {Name: "Scheduling", Components: []string{"kube-scheduler"}}, {Name: "Proxying", Components: []string{"kube-proxy"}},
	}
	for _, name := range []string{"InPlacePodVerticalScaling", "Scheduling"} {
		if g, err := Find(gates, name); err != nil || g.Name != name {
			t.Errorf("got %v, %v", g, err)
		}
	}
	for name, want := range map[string]string{
		"InplacePodVertical": "did you mean InPlacePodVerticalScaling?", "Xy": `no gate "Xy": podenv gate list`,
		"KubeletTrackng": "did you mean KubeletTracing?", "EnvFlies": "did you mean EnvFiles?", "inplacepodl": "did you mean InPlacePodLevelResources?",
		"Locked": "is locked to false in the release, and cannot be turned on and off: name a minor", "Nobody": "is known by no component",
		"Proxying": "is known by kube-proxy, and a walk turns gates on and off in kubelet, kube-apiserver, kube-controller-manager, kube-scheduler: choose",
	} {
		if _, err := Find(gates, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
}

// TestDependsFindsOtherGates, with an API server whose gates need each other: Top needs Middle, which needs Base,
// and Fixed, which is locked, needs Floor.
func TestDependsFindsOtherGates(t *testing.T) {
	server := filepath.Join(t.TempDir(), "kube-apiserver")
	if err := os.WriteFile(server, []byte(`#!/bin/sh
fail() { echo "\"command failed\" err=\"$1\"" >&2; exit 1; }
needs() { fail "$1 is enabled, but depends on features that are disabled: [$2]"; }
case $1 in
*Broken=true*) fail 'the flag --other is missing' ;;
*Fixed=false*) fail 'cannot set feature gate Fixed to false, feature is locked to true' ;;
*Floor=false*) needs Fixed Floor ;;
*Unknown*) fail 'unrecognized feature gate: Unknown' ;;
esac
on() { case $args in *$1=true*) ;; *) return 1 ;; esac; }
off() { case $args in *$1=false*) ;; *) return 1 ;; esac; }
args=$1
if on Top && ! on Middle; then needs Top Middle; fi
if on Middle && ! on Base; then needs Middle Base; fi
if off Default && ! { off Beta && off Gamma; }; then fail '[Beta is enabled, but depends on features that are disabled: [Default], Gamma is enabled, but depends on features that are disabled: [Default Base]]'; fi
`), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct{ needs, neededBy, err string }{
		"Top": {"Middle Base", "", ""}, "Default": {"", "Beta Gamma", ""}, "Alone": {}, "Unknown": {},
		"Floor":  {"", "Fixed", "does not start with Fixed=false,Floor=false"},
		"Broken": {"", "", "the flag --other is missing"},
	} {
		w := Walk{Gate: Gate{Name: name}}
		err := w.Depends(t.Context(), server)
		if strings.Join(w.Needs, " ") != want.needs || strings.Join(w.NeededBy, " ") != want.neededBy ||
			(err == nil) != (want.err == "") || err != nil && !strings.Contains(err.Error(), want.err) {
			t.Errorf("%s needs %q and is needed by %q, %v; want %v", name, w.Needs, w.NeededBy, err, want)
		}
	}
}

func TestGatesThatNeedItAreOffWithIt(t *testing.T) {
	w := Walk{Gate: Gate{Name: "Base", Components: []string{"kubelet"}}, Needs: []string{"Ground"}, NeededBy: []string{"Top"}}
	if got := w.switched(); !slices.Equal(got, []string{"Base", "Top"}) {
		t.Errorf("switches %q", got)
	}
	const want = "act on it: kubelet.\n\nIt needs these gates, which were on all the time:\n\n- Ground\n\nThese gates need it, and were off while it was:\n\n- Top\n"
	if page := w.Markdown(); !strings.Contains(page, want) {
		t.Errorf("no %q in\n%s", want, page)
	}
}

func TestKindLogsRequestsOfTheControlPlane(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	k, err := Kind(dir)
	if err != nil {
		t.Fatal(err)
	}
	if k.RuntimeConfig["api/all"] != "true" || !strings.Contains(k.KubeadmConfigPatches[0], auditLog) || len(k.Nodes) != 3 {
		t.Errorf("the configuration has neither all APIs nor the log: %+v", k)
	}
	if text, err := os.ReadFile(k.Nodes[0].ExtraMounts[0].HostPath); err != nil || !strings.Contains(string(text), "verbs: [create]") {
		t.Errorf("the policy is %q (%v)", text, err)
	}
}
