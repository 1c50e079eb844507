package expansion

import "k8s.io/apimachinery/pkg/util/validation"

// MappingFuncFor returns a function for Expand that looks a name up in each
// context in turn and returns the first value found. A name that no context has
// is reported to recorder and returned with the syntax around it, so that the
// result shows the reference as it was written. A name that no variable can have,
// as in $(a=b), is not reported. The contexts are read at each look-up: what is
// added to them later is found.
//
// A recorder that is a place of an UnexpandedReferences keeps the name for the
// one event of the container's start; any other raises an event at once. With a
// nil recorder nothing is reported.
//
// Document: Variable expansion, "Expansion package".
func MappingFuncFor(recorder ObjectEventRecorder, context ...map[string]string) func(string) string {
	return func(name string) string {
		for _, variables := range context {
			if value, ok := variables[name]; ok {
				return value
			}
		}
		report(recorder, name)
		return reference(name)
	}
}

// reference returns name with the syntax around it.
func reference(name string) string {
	return string(operator) + string(referenceOpener) + name + string(referenceCloser)
}

func report(recorder ObjectEventRecorder, name string) {
	if recorder == nil || len(validation.IsRelaxedEnvVarName(name)) > 0 {
		return
	}
	switch recorder := recorder.(type) {
	case *place:
		recorder.add(name)
	default:
		recorder.Eventf(eventTypeWarning, UnexpandedReferencesReason, "Could not expand %s", shortened(reference(name)))
	}
}
