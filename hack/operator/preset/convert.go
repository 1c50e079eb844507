package preset

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// PolicyVersions are the versions of admissionregistration.k8s.io that have
// MutatingAdmissionPolicy, with fields of the same names.
var PolicyVersions = []string{"v1", "v1beta1", "v1alpha1"}

// notCarried is what no policy can do.
var notCarried = []string{
	"A conflict leaves the pod as it is, without an event or a warning.",
	"Several policies have no promised order; presets are applied from oldest to newest.",
	"No annotation names what was injected.",
	"A policy is an object of the cluster: the users of the namespace cannot write it.",
}

// WritePolicies writes a MutatingAdmissionPolicy and its binding for each PodPreset of m, and
// before them, as comments, what they do not carry. namespace is that of presets that name none.
func WritePolicies(w io.Writer, m *Manifest, namespace, version string) error {
	if len(m.presets) == 0 {
		return fmt.Errorf("%s: no PodPreset in it", strings.Join(m.files, ", "))
	}
	var b bytes.Buffer
	for _, p := range m.presets {
		policy, lost, err := policyOf(p, cmp.Or(p.Namespace, namespace))
		if err != nil {
			return err
		}
		p.setDefaults()
		if why := broken(p); why != "" {
			return fmt.Errorf("PodPreset %s: %s", p.Name, why)
		}
		fmt.Fprintf(&b, "# What the policy does not carry of PodPreset %s:\n", p.Name)
		for _, line := range append(lost, notCarried...) {
			fmt.Fprintf(&b, "# - %s\n", line)
		}
		binding := &admission.MutatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
			Spec:       admission.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name},
		}
		policy.TypeMeta = metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/" + version, Kind: "MutatingAdmissionPolicy"}
		binding.TypeMeta = metav1.TypeMeta{APIVersion: policy.APIVersion, Kind: "MutatingAdmissionPolicyBinding"}
		for _, object := range []any{policy, binding} {
			text, err := yaml.Marshal(object)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "---\n%s", text)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// policyOf returns the policy of a preset, and what of this preset it does not carry.
func policyOf(p *PodPreset, namespace string) (*admission.MutatingAdmissionPolicy, []string, error) {
	c := &policy{}
	c.match("not-exempt", `!has(object.metadata.annotations) || (!("kubernetes.io/config.mirror" in object.metadata.annotations) && `+
		`(!("podpreset.admission.kubernetes.io/exclude" in object.metadata.annotations) || object.metadata.annotations["podpreset.admission.kubernetes.io/exclude"] != "true"))`)
	c.env(p.Spec.Env)
	c.envFrom(p.Spec.EnvFrom)
	c.mounts(p.Spec.VolumeMounts)
	c.volumes(p.Spec.Volumes)
	policy := &admission.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "." + p.Name},
		Spec: admission.MutatingAdmissionPolicySpec{
			// A preset never refuses a pod.
			FailurePolicy:      ptr.To(admission.Ignore),
			ReinvocationPolicy: admission.NeverReinvocationPolicy,
			MatchConstraints: &admission.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
				ObjectSelector:    &p.Spec.Selector,
				ResourceRules: []admission.NamedRuleWithOperations{{RuleWithOperations: admission.RuleWithOperations{
					Operations: []admission.OperationType{admission.Create},
					Rule:       admission.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			MatchConditions: c.conditions,
		},
	}
	for _, expression := range joined(c.patches, " + ") { // one, if it can be: an API server decodes the pod for each
		policy.Spec.Mutations = append(policy.Spec.Mutations, admission.Mutation{
			PatchType: admission.PatchTypeJSONPatch, JSONPatch: &admission.JSONPatch{Expression: expression},
		})
	}
	return policy, c.lost, c.err
}

// policy is one that is being written.
type policy struct {
	conditions []admission.MatchCondition
	patches    []string // lists of JSONPatch
	lost       []string
	err        error
}

func (c *policy) match(name, expression string) {
	c.conditions = append(c.conditions, admission.MatchCondition{Name: name, Expression: expression})
}

// joined makes of terms as few expressions as API servers compile: they refuse 100,000 characters, which
// inEach has twice of each term, and a depth of 250, which is that of the shortest terms at this length.
func joined(terms []string, operator string) (expressions []string) {
	const maxLength = 20_000
	for count := 0; len(terms) > 0; terms, count = terms[count:], 0 {
		for length := 0; count < len(terms) && (count == 0 || length+len(terms[count]) <= maxLength); count++ {
			length += len(terms[count])
		}
		expressions = append(expressions, strings.Join(terms[:count], operator))
	}
	return expressions
}

// inEach lets no pod through that has a container for which one of conditions, about c, is false.
func (c *policy) inEach(name string, conditions []string) {
	for i, condition := range joined(conditions, " && ") {
		c.match(fmt.Sprintf("%s-%d", name, i+1), fmt.Sprintf("object.spec.containers.all(c, %[1]s) && (!has(object.spec.initContainers) || object.spec.initContainers.all(c, %[1]s))", condition))
	}
}

// add appends value to a list of each container for which missing holds. Each patch adds one element: a list
// of what the pod has and what is written here cannot be written by every minor.
func (c *policy) add(list string, value any, missing string) {
	c.inContainers(missing, "/"+list+"/-", c.cel(value))
}

// inContainers adds value, which is CEL, at the end of path in each container c for which when holds.
func (c *policy) inContainers(when, path, value string) {
	for _, of := range []string{"containers", "initContainers"} {
		c.patches = append(c.patches, fmt.Sprintf(`(has(object.spec.%[1]s) ? object.spec.%[1]s.transformList(i, c, %[2]s, `+
			`JSONPatch{op: "add", path: "/spec/%[1]s/" + string(i) + "%[3]s", value: %[4]s}) : [])`, of, when, path, value))
	}
}

// list makes sure that each container has a list, which elements are then added to.
func (c *policy) list(name string) { c.inContainers("!has(c."+name+")", "/"+name, "[]") }

func (c *policy) env(env []corev1.EnvVar) {
	if len(env) == 0 {
		return
	}
	c.list("env")
	var conditions []string
	for _, e := range env {
		c.add("env", e, fmt.Sprintf("(!has(c.env) || !c.env.exists(e, e.name == %s))", c.cel(e.Name)))
		same := fmt.Sprintf(`(!has(e.valueFrom) && (has(e.value) ? e.value : "") == %s)`, c.cel(e.Value))
		if e.ValueFrom != nil {
			same = "false"
			c.lost = append(c.lost, fmt.Sprintf("A pod that defines %s gets nothing, even where its definition is the same.", e.Name))
		}
		conditions = append(conditions, fmt.Sprintf("(!has(c.env) || c.env.all(e, e.name != %s || %s))", c.cel(e.Name), same))
	}
	c.inEach("env", conditions)
	c.lost = append(c.lost, "A variable that the pod has from a ConfigMap or Secret is no conflict: a policy reads none.")
}

func (c *policy) envFrom(sources []corev1.EnvFromSource) {
	if len(sources) == 0 {
		return
	}
	c.lost = append(c.lost, "Its envFrom is never in conflict, and is repeated where the pod has the same.")
	c.list("envFrom")
	for _, source := range sources {
		c.add("envFrom", source, "true")
	}
}

func (c *policy) mounts(mounts []corev1.VolumeMount) {
	if len(mounts) == 0 {
		return
	}
	c.lost = append(c.lost, "Paths are compared as text: /cache/ and /cache differ. Devices and the container's privileges are not looked at.")
	c.list("volumeMounts")
	var conditions []string
	for _, m := range mounts {
		c.add("volumeMounts", m, fmt.Sprintf("(!has(c.volumeMounts) || !c.volumeMounts.exists(e, e.mountPath == %s))", c.cel(m.MountPath)))
		same := fmt.Sprintf(`(e.name == %s && (has(e.subPath) ? e.subPath : "") == %s && (has(e.readOnly) && e.readOnly) == %t && !has(e.subPathExpr) && !has(e.mountPropagation))`,
			c.cel(m.Name), c.cel(m.SubPath), m.ReadOnly)
		if m.SubPathExpr != "" || m.MountPropagation != nil || m.RecursiveReadOnly != nil {
			same = "false"
			c.lost = append(c.lost, fmt.Sprintf("A pod that mounts something at %s gets nothing, even where it is the same.", m.MountPath))
		}
		conditions = append(conditions, fmt.Sprintf("(!has(c.volumeMounts) || c.volumeMounts.all(e, e.mountPath != %s || %s))", c.cel(m.MountPath), same))
	}
	c.inEach("mounts", conditions)
}

func (c *policy) volumes(volumes []corev1.Volume) {
	if len(volumes) == 0 {
		return
	}
	c.patches = append(c.patches, `(has(object.spec.volumes) ? [] : [JSONPatch{op: "add", path: "/spec/volumes", value: []}])`)
	var names, literals []string
	for _, v := range volumes {
		names, literals = append(names, v.Name), append(literals, c.cel(v.Name))
		c.patches = append(c.patches, fmt.Sprintf(`[JSONPatch{op: "add", path: "/spec/volumes/-", value: %s}]`, c.cel(v)))
	}
	c.match("volumes", fmt.Sprintf("!has(object.spec.volumes) || object.spec.volumes.all(e, !(e.name in [%s]))", strings.Join(literals, ", ")))
	c.lost = append(c.lost, fmt.Sprintf("A pod that has a volume %s gets nothing, even where it is the same.", strings.Join(names, " or ")))
}

// cel writes v, as its JSON is, as a literal of CEL.
func (c *policy) cel(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		c.err = err
		return ""
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var decoded any
	if err := decoder.Decode(&decoded); err != nil {
		c.err = err
	}
	return literal(decoded)
}

// literal writes what JSON can hold. Kubernetes' CEL wants one type for all values of a list
// or map, which dyn gives them.
func literal(v any) string {
	var parts []string
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			parts = append(parts, fmt.Sprintf("%s: dyn(%s)", literal(key), literal(value)))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		for _, value := range v {
			parts = append(parts, "dyn("+literal(value)+")")
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case nil:
		return "null"
	case string:
		text, _ := json.Marshal(v) // a string always can; its escapes are CEL's too
		return string(text)
	}
	return fmt.Sprint(v) // a number or a bool
}
