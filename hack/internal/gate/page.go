package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/conformance"
	"podenv.dev/hack/internal/jsonout"
)

// unknown is the answer to a question that a walk cannot answer.
const unknown = "This walk does not tell."

// tooLong is the problem of a walk that WalkAll has ended.
const tooLong = "it took longer than %s, which --limit sets"

// unaware is the answer to questions about API servers if they have nothing to do with the gate.
const unaware = "The API server does not know the gate."

// Save writes walk.json and walk.md, the page, to a folder. Where a complete walk of the same build is, one that is not
// complete goes to the folder unfinished in it.
func (w *Walk) Save(dir string) error {
	if !w.Complete && Load(dir, w.Build, 0) != nil {
		dir = filepath.Join(dir, "unfinished")
	}
	return errors.Join(jsonout.Save(filepath.Join(dir, "walk.json"), w),
		renameio.WriteFile(filepath.Join(dir, "walk.md"), []byte(w.Markdown()), 0o644))
}

// End saves why a walk was not completed: err and, if ctx has ended, the cause of that. It returns the reason,
// or nil if err is nil.
func (w *Walk) End(ctx context.Context, dir string, err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	w.Problem = err.Error()
	return errors.Join(err, w.Save(dir))
}

// Load returns the walk that Save has written to a folder if it is of the same build, and is complete or took as long
// as limit; or nil.
func Load(dir, build string, limit time.Duration) *Walk {
	var w Walk
	data, err := os.ReadFile(filepath.Join(dir, "walk.json"))
	if err != nil || json.Unmarshal(data, &w) != nil || w.Build != build || !w.Complete && !strings.HasPrefix(w.Problem, fmt.Sprintf(tooLong, limit)) {
		return nil
	}
	return &w
}

// WriteMarkdownTable writes a row for each walk.
func WriteMarkdownTable(out io.Writer, walks []*Walk) error {
	var b strings.Builder
	b.WriteString("| gate | stage | specs | fields it guards | off and on again | two API servers | older kubelets | up and down | processor time of the API server per pod |\n|" +
		strings.Repeat("---|", 9) + "\n")
	for _, w := range walks {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", w.Gate.Name, strings.ToLower(w.Gate.Stage), strings.Join(w.row(), " | "))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// row has the columns of the table that the walk found: specs, fields and the six others.
func (w *Walk) row() []string {
	problem, _, _ := strings.Cut(strings.ReplaceAll(w.Problem, "|", `\|`), "\n")
	switch {
	case w.Stored == nil && len(w.On) == 0 && problem != "":
		return []string{"not walked: " + problem, "", "", "", "", "", ""}
	case w.Stored == nil && len(w.On) == 0:
		return []string{strings.Join(append([]string{"no specs that can run"}, w.Gate.lacks()...), "<br>"), "", "", "", "", "", ""}
	}
	row := []string{counts(w.On), "-", w.Stored.summary(), "-", "-", w.Older.summary(), "-"}
	if problem != "" {
		row[0] += "<br>not completed: " + problem
	}
	if len(w.Objects) > 0 {
		row[1] = fmt.Sprintf("%d dropped, %d refused", len(w.Dropped), len(w.Refused))
	}
	if w.Servers != nil && w.Servers.Objects > 0 {
		row[3] = fmt.Sprintf("%d lost, %d refused", len(w.Servers.Lost), len(w.Servers.Refused))
	}
	if len(w.Skew) > 0 && len(w.On) > 0 {
		var cells []string
		for _, release := range slices.Backward(slices.Sorted(maps.Keys(w.Skew))) {
			cells = append(cells, release+": "+counts(w.Skew[release]))
		}
		row[4] = strings.Join(cells, "<br>")
	}
	if at := slices.IndexFunc(w.Costs, func(c Cost) bool { return c.What == fmt.Sprintf(processorTime, "kube-apiserver") }); at >= 0 {
		row[6] = spread(w.Costs[at].Off) + " off, " + spread(w.Costs[at].On) + " on"
	}
	return row
}

// summary counts what was found.
func (s *Stored) summary() string {
	if s == nil || !s.Again || s.Objects == 0 {
		return "-"
	}
	return fmt.Sprintf("%d hidden, %d lost, %d refused, %d of %d restarted", len(s.Hidden), len(s.Lost)+len(s.Written), len(s.Refused), len(s.Restarted), s.Pods)
}

// Markdown returns what a walk has found as answers to the questions of a KEP's Production
// Readiness Review, in their order.
func (w *Walk) Markdown() string {
	g := w.Gate
	var b strings.Builder
	section := func(title string) { fmt.Fprintf(&b, "\n## %s\n", title) }
	question := func(text, answer string) { fmt.Fprintf(&b, "\n**%s** %s\n", text, answer) }
	unanswered := func(texts ...string) {
		for _, text := range texts {
			question(text, unknown)
		}
	}

	fmt.Fprintf(&b, "# %s\n\n%s in %s, on by default: %t. Every answer is what `%s` found.\n", g.Name, g.Stage, w.Release, g.Default, w.Command)
	if w.Problem != "" {
		fmt.Fprintf(&b, "\n**The walk was not completed.** %s\n", w.Problem)
	}
	section("Enablement and rollback")
	question("How is it turned on?", "By the gate `"+g.Name+"`. These accept it, and the walk does not tell which of them act on it: "+g.knownBy()+"."+
		list("\n\nIt needs these gates, which were on all the time:", "", w.Needs)+
		list("\n\nThese gates need it, and were off while it was:", "", w.NeededBy))
	unanswered("Does it change any default behavior?")
	question("Does it change what objects are stored?", w.fields())
	question("Can it be turned off again?", w.Stored.meanwhile("While it was off"))
	question("And on again?", w.Stored.after())
	question("Are there tests of it?", w.specs())
	section("Rollout, upgrade and rollback")
	question("Can it disturb workloads that run?", w.disturbed())
	unanswered("Which metrics tell to roll back?")
	question("Were upgrade, downgrade and upgrade tested?", w.upAndDown())
	question("What happens with older kubelets?", w.skew())
	question("What happens with two API servers, one with the gate off?", w.servers())
	unanswered("Is anything deprecated or removed with it?")
	section("Monitoring")
	question("Which metrics are there with the gate on only?", w.metrics())
	unanswered("How can an operator see that workloads use it?", "How can its user see that it works?", "What are its SLOs and SLIs?", "Which metrics would help, and are missing?")
	section("Dependencies")
	unanswered("Which services does it need?")
	section("Scalability")
	question("Which API calls, processor time and memory does it add?", w.costs())
	unanswered("Does it add types to the API, or calls to a cloud?", "Does it make objects larger or more?", "Do operations with an SLO take longer?", "Can it exhaust what a node has?")
	section("Troubleshooting")
	unanswered("What does it do while the API server or etcd is away?")
	question("What is known to fail?", w.failures())
	unanswered("What is to be done if SLOs are not met?")
	return b.String()
}

// list renders findings under a sentence; none is the answer if there are none.
func list(sentence, none string, found []string) string {
	if len(found) == 0 {
		return none
	}
	return sentence + "\n\n- " + strings.Join(found, "\n- ")
}

func (w *Walk) fields() string {
	switch {
	case w.Stored == nil:
		return unknown
	case !w.Gate.ofAPIServer():
		return unaware
	case len(w.Objects) == 0:
		return "Unknown: no object of the specs could be created again in an API server with the gate on and with it off."
	}
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(w.Objects)) {
		kinds = append(kinds, fmt.Sprintf("%s (%d)", kind, w.Objects[kind]))
	}
	none := "An API server with the gate off stores all of their fields."
	if len(w.Refused) > 0 { // perhaps all
		none = "An API server with the gate off leaves no field out of those that it takes."
	}
	return "Objects of these kinds were tried, as the specs created them or as this branch declares: " + strings.Join(kinds, ", ") + ". " +
		list("An API server with the gate off leaves these fields out of new ones:", none, w.Dropped) +
		list("\n\nIt refuses some:", "", w.Refused)
}

func (w *Walk) upAndDown() string {
	if w.Older == nil || !w.Older.Again {
		return unknown
	}
	return "The kubelets and the API server were " + w.OlderRelease + " for a while. " + w.Older.meanwhile("With them") + "\n\nBack on " + w.Release + ": " +
		w.Older.after() + "\n\n" + w.Older.restarts()
}

func (s *Stored) meanwhile(when string) string {
	if s == nil {
		return unknown
	}
	if s.Objects == 0 {
		return "Unknown: no object of the specs could be stored."
	}
	return fmt.Sprintf("%d objects were stored with the gate on. ", s.Objects) +
		list(when+", these fields were not shown, or differed:", when+", all of their fields were shown.", s.Hidden) +
		fmt.Sprintf("\n\nUpdates of a label that were accepted: %d.", s.Updated) + list("\n\nSome were refused:", "", s.Refused)
}

func (s *Stored) after() string {
	if s == nil || !s.Again {
		return unknown
	}
	if s.Objects == 0 {
		return "Unknown: no object of the specs could be stored."
	}
	return list("Fields were lost, or differ, of objects that nobody had written to:", fmt.Sprintf("Objects that nobody had written to were as before: %d.", s.Unwritten), s.Lost) +
		list("\n\nFields were lost, or differ, of objects that were written to meanwhile: a label by the walk, or a status by a component:",
			fmt.Sprintf("\n\nSo were those that were written to meanwhile: %d.", s.Objects-s.Unwritten), s.Written)
}

func (s *Stored) restarts() string {
	return list("These containers were started again, or ended, as some do by themselves:",
		fmt.Sprintf("Of %d containers none was started again, and none ended.", s.Pods), s.Restarted)
}

func (w *Walk) servers() string {
	if !w.Gate.ofAPIServer() {
		return unaware
	}
	if w.Servers == nil || w.Servers.Objects == 0 {
		return unknown
	}
	return fmt.Sprintf("Objects that one of them created, and both updated a label of in turn: %d. ", w.Servers.Objects) +
		list("Fields were lost, or differ:", "No field was lost.", w.Servers.Lost) +
		list("\n\nThe one with the gate off did not show these, or otherwise:", "", w.Servers.Hidden) +
		list("\n\nRequests were refused:", "\n\nNo request was refused.", w.Servers.Refused)
}

func (w *Walk) skew() string {
	if len(w.Skew) == 0 || len(w.On) == 0 {
		return unknown
	}
	text := "The specs with the gate on in the API server, by the kubelets of the workers:\n"
	for _, release := range slices.Backward(slices.Sorted(maps.Keys(w.Skew))) {
		text += fmt.Sprintf("\n- %s: %s", release, counts(w.Skew[release]))
	}
	return text
}

func (w *Walk) costs() string {
	if len(w.Costs) == 0 {
		return unknown
	}
	pods := "pods of a spec"
	if w.plain() {
		pods = "pods that do not use it (those that do are refused with the gate off)"
	}
	text := fmt.Sprintf("Mean, and least to most, of %d rounds with %d %s each, on one worker:\n\n| | off | on |\n|---|---|---|", rounds, podsPerRound, pods)
	for _, c := range w.Costs {
		text += fmt.Sprintf("\n| %s | %s | %s |", c.What, spread(c.Off), spread(c.On))
	}
	return text
}

// spread renders the mean of values, and their least and most.
func spread(values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	total := 0.0
	for _, v := range values {
		total += v
	}
	return fmt.Sprintf("%.3g (%.3g to %.3g)", total/float64(len(values)), slices.Min(values), slices.Max(values))
}

func (w *Walk) specs() string {
	text := "The release has no end-to-end spec with the label `FeatureGate:" + w.Gate.Name + "` that ran here."
	if len(w.On) > 0 {
		text = fmt.Sprintf("Of the release's end-to-end specs with its label, with the gate on: %s.", counts(w.On))
	} else if w.Stored == nil {
		return unknown
	}
	if w.Again != nil {
		text += fmt.Sprintf(" After the gate had been off: %s.", counts(w.Again))
	}
	return text + list("\n\nSome did not run, because they need what is not here:", "", w.Gate.lacks())
}

func counts(rows []conformance.Row) string {
	n := map[string]int{}
	for _, r := range rows {
		n[r.State]++
	}
	return fmt.Sprintf("%d passed, %d failed, %d left out", n[conformance.Passed], n[conformance.Failed], n[conformance.LeftOut])
}

func (w *Walk) disturbed() string {
	if w.Stored == nil || !w.Stored.Again || w.Stored.Pods == 0 {
		return unknown
	}
	return fmt.Sprintf("%d containers of the specs' pods ran while the gate went off and on in the control plane and the kubelets. ", w.Stored.Pods) +
		w.Stored.restarts()
}

func (w *Walk) metrics() string {
	if w.Metrics == nil {
		return unknown
	}
	these := "These, of which some may be of what happened by chance with it on only:"
	if len(w.Costs) == 0 {
		these = "These, but no pod started while the gate was off, so that some may be of starting pods:"
	}
	return list(these, "None that the control plane or a kubelet served by then.", w.Metrics)
}

func (w *Walk) failures() string {
	rows, none := slices.Concat(w.On, w.Again), unknown
	for _, release := range slices.Sorted(maps.Keys(w.Skew)) {
		rows = append(rows, w.Skew[release]...)
	}
	var failed []string
	for _, r := range rows {
		switch r.State {
		case conformance.Failed:
			if !slices.ContainsFunc(failed, func(other string) bool { return strings.HasPrefix(other, r.Spec+": ") }) {
				failed = append(failed, r.Spec+": "+r.Why)
			}
		case conformance.Passed:
			none = "No spec of it failed here."
		}
	}
	return list("Specs that failed here, also with older kubelets, each with its first reason:", none, failed) + list("\n\nNot all specs ran:", "", w.Ended)
}
