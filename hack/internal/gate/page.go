package gate

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"podenv.dev/hack/internal/conformance"
)

// unknown is the answer to a question that a walk cannot answer.
const unknown = "This walk does not tell."

// WriteMarkdown writes what a walk has found as answers to the questions of a KEP's Production
// Readiness Review, in their order. command is the command that found it.
func (w *Walk) WriteMarkdown(out io.Writer, command string) error {
	g := w.Gate
	var b strings.Builder
	section := func(title string) { fmt.Fprintf(&b, "\n## %s\n", title) }
	question := func(text, answer string) { fmt.Fprintf(&b, "\n**%s** %s\n", text, answer) }

	fmt.Fprintf(&b, "# %s\n\n%s in %s, on by default: %t. Every answer is what `%s` found.\n", g.Name, g.Stage, w.Release, g.Default, command)
	section("Enablement and rollback")
	question("How is it turned on?", "By the gate `"+g.Name+"` of "+orNone(g.Components)+".")
	question("Does it change what objects are stored?", w.fields())
	question("Can it be turned off again?", w.off())
	question("And on again?", w.again())
	question("Are there tests of it?", w.specs())
	section("Rollout, upgrade and rollback")
	question("Can it disturb workloads that run?", w.disturbed())
	question("Were upgrade, downgrade and upgrade tested?", unknown)
	question("What happens with older kubelets, and with two API servers that disagree?", unknown)
	section("Monitoring")
	question("Which metrics are there with the gate on only?", w.metrics())
	section("Dependencies")
	question("Which services does it need?", unknown)
	section("Scalability")
	question("Which API calls, objects, processor time and memory does it add?", unknown)
	section("Troubleshooting")
	question("What is known to fail?", w.failures())
	_, err := io.WriteString(out, b.String())
	return err
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "no component"
	}
	return strings.Join(names, ", ")
}

// list renders findings under a sentence; none is the answer if there are none.
func list(sentence, none string, found []string) string {
	if len(found) == 0 {
		return none
	}
	return sentence + "\n\n- " + strings.Join(found, "\n- ")
}

func (w *Walk) fields() string {
	if w.Stored == nil {
		return unknown
	}
	if len(w.Objects) == 0 {
		return "Unknown: the specs of the gate created no object."
	}
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(w.Objects)) {
		kinds = append(kinds, fmt.Sprintf("%s (%d)", kind, w.Objects[kind]))
	}
	return "The specs created objects of the kinds " + strings.Join(kinds, ", ") + ". " +
		list("An API server with the gate off leaves these fields out of new ones:", "An API server with the gate off stores all of their fields.", w.Dropped) +
		list("\n\nIt refuses some:", "", w.Refused)
}

func (w *Walk) off() string {
	if w.Stored == nil {
		return unknown
	}
	if w.Stored.Objects == 0 {
		return "Unknown: no object of the specs could be stored."
	}
	return fmt.Sprintf("%d objects were stored with the gate on. ", w.Stored.Objects) +
		list("While it was off, these fields were not shown, or differed:", "While it was off, all of their fields were shown.", w.Stored.Hidden) +
		list("\n\nThe update of a label was refused:", "\n\nThe update of a label was accepted.", w.Stored.Refused)
}

func (w *Walk) again() string {
	if w.Stored == nil || !w.Stored.Again {
		return unknown
	}
	if w.Stored.Objects == 0 {
		return "Unknown: no object of the specs could be stored."
	}
	return list("Fields were lost, or differ, of objects that nobody had written to:", "Objects that nobody had written to were as before.", w.Stored.Lost) +
		list("\n\nFields were lost, or differ, of objects whose label was updated while the gate was off:", "\n\nSo were those whose label was updated while the gate was off.", w.Stored.Written)
}

func (w *Walk) specs() string {
	if len(w.On) == 0 {
		return "The release has no end-to-end spec with the label `FeatureGate:" + w.Gate.Name + "` that ran here."
	}
	text := fmt.Sprintf("Of the release's end-to-end specs with its label, with the gate on: %s.", counts(w.On))
	if w.Again != nil {
		text += fmt.Sprintf(" After the gate had been off: %s.", counts(w.Again))
	}
	return text
}

func counts(rows []conformance.Row) string {
	n := map[string]int{}
	for _, r := range rows {
		n[r.State]++
	}
	return fmt.Sprintf("%d passed, %d failed, %d left out", n[conformance.Passed], n[conformance.Failed], n[conformance.LeftOut])
}

func (w *Walk) disturbed() string {
	if w.Stored == nil || w.Stored.Pods == 0 {
		return unknown
	}
	return fmt.Sprintf("%d containers of the specs' pods ran while the gate went off and on in the API server and the kubelets. ", w.Stored.Pods) +
		list("These were started again:", "None was started again.", w.Stored.Restarted)
}

func (w *Walk) metrics() string {
	if !w.Measured {
		return unknown
	}
	return list("These:", "None that the API server or a kubelet served by then.", w.Metrics)
}

func (w *Walk) failures() string {
	var failed []string
	for _, r := range slices.Concat(w.On, w.Again) {
		if r.State == conformance.Failed {
			failed = append(failed, r.Spec+": "+r.Why)
		}
	}
	return list("Specs that failed here:", "No spec of it failed here.", failed)
}
