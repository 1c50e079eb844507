package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"podenv.dev/featuregates"
	"podenv.dev/test/manifests"
)

// auditLog is the beginning of the paths of the audit log on the control-plane node.
const auditLog = "/var/log/podenv-audit/audit"

// auditPolicy asks for what was created, with the objects as they were sent.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Request, verbs: [create]}
- {level: None}
`

// auditPatch configures the API server to log by the policy, which kind mounts into the node.
const auditPatch = `kind: ClusterConfiguration
apiServer:
  extraArgs:
    audit-policy-file: /etc/podenv-audit.yaml
    audit-log-path: ` + auditLog + `.log
    audit-log-maxsize: "100"
  extraVolumes:
  - {name: audit-policy, hostPath: /etc/podenv-audit.yaml, mountPath: /etc/podenv-audit.yaml, readOnly: true, pathType: File}
  - {name: audit-log, hostPath: /var/log/podenv-audit, mountPath: /var/log/podenv-audit, pathType: DirectoryOrCreate}
`

// Kind returns the configuration of a cluster with two workers for a walk, whose API server serves all versions
// of all APIs, and logs who creates what. It writes a file to the folder dir, which the cluster needs.
func Kind(dir string) (*v1alpha4.Cluster, error) {
	policy := filepath.Join(dir, "audit.yaml")
	if err := errors.Join(os.MkdirAll(dir, 0o755), renameio.WriteFile(policy, []byte(auditPolicy), 0o644)); err != nil {
		return nil, err
	}
	return &v1alpha4.Cluster{
		RuntimeConfig:        map[string]string{"api/all": "true"},
		KubeadmConfigPatches: []string{auditPatch},
		Nodes: []v1alpha4.Node{
			{Role: v1alpha4.ControlPlaneRole, ExtraMounts: []v1alpha4.Mount{{HostPath: policy, ContainerPath: "/etc/podenv-audit.yaml", Readonly: true}}},
			{Role: v1alpha4.WorkerRole}, {Role: v1alpha4.WorkerRole},
		},
	}, nil
}

// probe is an object that a spec has created.
type probe struct {
	resource   schema.GroupVersionResource
	namespaced bool
	object     unstructured.Unstructured

	on     map[string]any // what an API server with the gate on stores of it; nil if it refuses it
	varies []string       // fields of on that differ from one request to the next
}

// maxProbes limits the objects of one gate. Specs create many that differ in their names only.
const maxProbes = 40

// fromAudit returns the objects that specs created, by the lines of an API server's audit log, which
// has requests with their objects. Of those that differ in names and labels only, it returns one.
func fromAudit(log string) ([]probe, error) {
	var probes []probe
	seen := map[string]bool{}
	for line := range strings.Lines(log) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		var event struct {
			Verb, UserAgent string
			ObjectRef       struct{ Resource, Namespace, APIGroup, APIVersion, Subresource string }
			ResponseStatus  struct{ Code int }
			RequestObject   map[string]any
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			return nil, fmt.Errorf("the audit log: %w", err)
		}
		ref := event.ObjectRef
		if event.Verb != "create" || event.ResponseStatus.Code != 201 || ref.Subresource != "" || event.RequestObject == nil ||
			!strings.HasPrefix(event.UserAgent, "e2e.test/") && !strings.HasPrefix(event.UserAgent, "kubectl/") || slices.Contains(scaffolding, ref.Resource) {
			continue
		}
		p := probe{
			resource:   schema.GroupVersionResource{Group: ref.APIGroup, Version: ref.APIVersion, Resource: ref.Resource},
			namespaced: ref.Namespace != "", object: unstructured.Unstructured{Object: event.RequestObject},
		}
		delete(p.object.Object, "status")
		shape := p.object.DeepCopy().Object
		delete(shape, "metadata")
		text, err := json.Marshal(shape)
		if err != nil {
			return nil, err
		}
		if key := p.resource.String() + string(text); !seen[key] && len(probes) < maxProbes {
			seen[key] = true
			p.object.SetResourceVersion("")
			p.object.SetUID("")
			probes = append(probes, p)
		}
	}
	return probes, nil
}

// declared returns the objects by which featuregates/ declares how the gate of this branch called name is
// used in minor: those that its pod needs, under their own names, and all of them as probes.
func declared(minor, name string) (needed, probes []probe, err error) {
	features, err := featuregates.Probed(minor)
	for _, f := range features {
		if string(f.Name) != name {
			continue
		}
		for _, file := range append(slices.Clone(f.Probe.Objects), f.Probe.Pod) {
			object, err := manifests.Object(file)
			if err != nil {
				return nil, nil, err
			}
			resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
			probes = append(probes, probe{resource: resource, namespaced: true, object: *object})
		}
		needed = probes[:len(f.Probe.Objects)]
	}
	return needed, probes, err
}

// scaffolding are resources that every spec creates, whatever it is about.
var scaffolding = []string{"namespaces", "serviceaccounts", "events", "subjectaccessreviews", "selfsubjectaccessreviews",
	"tokenreviews", "leases", "clusterrolebindings", "rolebindings"}

// deciding matches the resources of which an object changes or refuses others, or stands for a server or a node.
var deciding = regexp.MustCompile(`^(limitranges|resourcequotas|.*webhookconfigurations|.*policybindings|apiservices|nodes)$`)

// storable reports whether a walk stores p.
func (p probe) storable() bool { return p.on != nil && !deciding.MatchString(p.resource.Resource) }

// client returns the client of p's kind, in namespace if the kind has namespaces.
func (p probe) client(objects dynamic.Interface, namespace string) dynamic.ResourceInterface {
	if p.namespaced {
		return objects.Resource(p.resource).Namespace(namespace)
	}
	return objects.Resource(p.resource)
}

// named is the object in namespace, called name.
func (p probe) named(namespace, name string) *unstructured.Unstructured {
	object := p.object.DeepCopy()
	object.SetGenerateName("")
	object.SetOwnerReferences(nil) // which may be gone
	object.SetFinalizers(nil)
	object.SetName(name)
	if p.namespaced {
		object.SetNamespace(namespace)
	}
	return object
}

// plain is a pod with the first image of the pod p alone, which no gate guards.
func (p probe) plain() unstructured.Unstructured {
	containers, _, _ := unstructured.NestedSlice(p.object.Object, "spec", "containers")
	image, _, _ := unstructured.NestedFieldNoCopy(containers[0].(map[string]any), "image")
	return unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{
		"restartPolicy": "Never", "containers": []any{map[string]any{"name": "plain", "image": image}}}}}
}

// String names the kind of the object.
func (p probe) String() string { return p.object.GetKind() }

// dryRun returns what the API server would store, or why it refuses. Some kinds have rules for names, which p's keeps.
func (p probe) dryRun(ctx context.Context, objects dynamic.Interface) (_ map[string]any, refused string, err error) {
	for _, name := range []string{"probe", p.object.GetName()} {
		stored, err := p.client(objects, namespace).Create(ctx, p.named(namespace, name), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return stored.Object, "", nil
		}
		why := refusal(err)
		if refused = cmp.Or(refused, why); why == "" {
			return nil, "", err
		}
	}
	return nil, refused, nil
}

// refusal is why an API server refuses an object; empty if err is nil, or about something else.
func refusal(err error) string {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && slices.Contains([]int32{400, 403, 404, 405, 409, 422}, status.Status().Code) {
		return status.Status().Message
	}
	return ""
}

// missing returns the fields that are in a and not in b, or differ, as paths. It leaves out what the
// API server sets itself.
func missing(a, b map[string]any) []string {
	var paths []string
	compare(a, b, "", &paths)
	return slices.DeleteFunc(paths, func(path string) bool {
		return slices.ContainsFunc(assigned, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
	})
}

// assigned are the fields that the API server sets anew for each object.
var assigned = []string{"metadata.uid", "metadata.creationTimestamp", "metadata.resourceVersion", "metadata.managedFields", "metadata.generation",
	"metadata.name", "status"}

func compare(a, b any, path string, paths *[]string) {
	switch a := a.(type) {
	case map[string]any:
		if other, ok := b.(map[string]any); ok {
			for key, value := range a {
				compare(value, other[key], strings.TrimPrefix(path+"."+key, "."), paths)
			}
			return
		}
	case []any:
		if other, ok := b.([]any); ok && len(a) == len(other) {
			for i, value := range a {
				compare(value, other[i], path+"[]", paths)
			}
			return
		}
	default:
		if fmt.Sprint(a) == fmt.Sprint(b) {
			return
		}
	}
	*paths = append(*paths, path)
}
