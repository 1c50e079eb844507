package featuregates

import "fmt"

// Document is a document that the features implement, with its statements. A spec shows a statement if
// it has its label, which is NAME:ROW.
type Document struct {
	Name, Title string
	Rows        [][2]string // row and text
}

// Documents are the documents of this branch whose statements have labels.
var Documents = []Document{
	{"KEP-3721", "Support for env files, failure and fallback strategy", [][2]string{
		{"1", "The volume does not exist: pod creation fails with an error."},
		{"2", "The volume is not an emptyDir: pod creation fails with an error."},
		{"3", "The file or the key does not exist: the container fails to start, and an event has an error message."},
		{"4", "The file or the key does not exist, and optional is true: the container starts, and the variable is not set."},
		{"5", "The file cannot be parsed: the container fails to start, and an event has an error message."},
		{"6", "The file has invalid names of variables: the container fails to start, and an event has an error message."},
		{"7", "The container's UID may not read the file: the container fails to start, and an event has an error message."},
	}},
	{"KEP-4369", "Relaxed environment variable names", [][2]string{
		{"create on", "Gate on, a new object: every printable ASCII character but = is accepted."},
		{"create off", "Gate off, a new object: strict validation."},
		{"update on", "Gate on, an update: every printable ASCII character but = is accepted."},
		{"update off strict", "Gate off, the old object passes strict validation: strict validation of the update."},
		{"update off relaxed", "Gate off, the old object has special names: relaxed validation of the update."},
		{"refused", "No name is empty or has =, a character that is not printable, or one outside of ASCII."},
		{"container", "The container sees variables with special names."},
		{"config map", "Keys of a ConfigMap outside of C_IDENTIFIER become variables by envFrom."},
		{"secret", "Keys of a Secret outside of C_IDENTIFIER become variables by envFrom."},
		{"expansion", "Environment variables with special names can be expanded."},
		{"rollback", "Gate off: running workloads are not affected, and new ones with special names cannot be created."},
		{"again", "Gate on again: the feature works as before."},
	}},
	{"Variable expansion", "Variable expansion in env, command and args", [][2]string{
		{"order", "A container's environment is expanded in order, and a variable can be used by those declared after it."},
		{"services", "A variable may refer to the service environment variables."},
		{"command", "Variables are expanded in command and args, and that needs no shell in the image."},
		{"defaults", "Values come from several maps, the first that has the name wins."},
		{"unmatched", "A reference that cannot be expanded stays as it is, syntax included."},
		{"escape", "$$(NAME) gives $(NAME), whether NAME can be expanded or not."},
		{"malformed", "A malformed reference, and $ without parentheses, are ordinary characters."},
		{"event", "An event on the pod says which references could not be expanded."},
		{"example 1", "The first example: an address made of the variables of a service."},
		{"example 2", "The second example: an address made of the pod's namespace."},
	}},
	{"Pod Preset", "Pod Preset", [][2]string{
		{"selector", "Validation: the selector must be defined and not empty."},
		{"one of", "Validation: at least one of env, envFrom, or volumes with mounts."},
		{"volume mount", "Validation: a volume has a mount."},
		{"api", "Validation: all existing API validations are applied."},
		{"immutable", "A preset is immutable."},
		{"same", "No conflict: the pod has exactly what the preset has."},
		{"redefined", "Conflict: env or volumes are redefined; an event, and nothing is injected."},
		{"env and envFrom", "Conflict: between env and envFrom; an event, and nothing is injected."},
		{"exclude", "The exclude annotation keeps presets from a pod."},
		{"oldest first", "Presets are applied from oldest to newest."},
		{"all containers", "Env, envFrom and mounts apply to all containers of the pod."},
		{"annotation", "The pod has an annotation with the preset's resource version."},
		{"example 1", "Example: simple pod spec."},
		{"example 2", "Example: pod spec with ConfigMap."},
		{"example 3", "Example: ReplicaSet with pod spec."},
		{"example 4", "Example: multiple presets."},
		{"example 5", "Example: conflict."},
	}},
	{"TEP-0101", "Env in pod template", [][2]string{
		{"run", "Variables of the run's pod template take precedence over those of steps and stepTemplate."},
		{"default", "The cluster's default pod template adds variables to all runs, and a run may override them."},
		{"precedence", "There is one order of precedence for all places."},
		{"references", "Values are literals or Kubernetes references."},
		{"forbidden", "A run that sets a forbidden variable is refused by the webhook, with the document's sentence."},
		{"forbidden in the default", "Open question: forbidden variables do not bind the cluster's default."},
		{"forbidden in steps", "Open question: forbidden variables do not bind stepTemplate and steps."},
		{"per task", "Open question: tasks of one pipeline may have different values."},
		{"examples", "The document's examples."},
	}},
}

// Row returns the label of a row. It panics if there is no such row, so that no suite with a wrong
// label starts.
func Row(document, row string) string {
	for _, d := range Documents {
		for _, r := range d.Rows {
			if d.Name == document && r[0] == row {
				return document + ":" + row
			}
		}
	}
	panic(fmt.Sprintf("featuregates.Documents has no row %q of %q", row, document))
}
