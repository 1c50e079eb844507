package expansion

import (
	"reflect"
	"testing"
)

func TestTheFirstContextWins(t *testing.T) {
	container := map[string]string{"BOTH": "container", "EMPTY": ""}
	services := map[string]string{"BOTH": "service", "EMPTY": "service", "SERVICE": "service"}
	mapping := MappingFuncFor(nil, container, services)
	for name, want := range map[string]string{"BOTH": "container", "EMPTY": "", "SERVICE": "service", "NEITHER": "$(NEITHER)"} {
		if got := mapping(name); got != want {
			t.Errorf("%s: want %q, got %q", name, want, got)
		}
	}
}

// The kubelet adds each variable to a context that the mapping already has.
func TestAVariableIsAvailableToThoseDeclaredAfterIt(t *testing.T) {
	declared := []struct{ name, value string }{
		{"LATE", "$(HOST)"},
		{"HOST", "example.com"},
		{"PORT", "8080"},
		{"ADDRESS", "$(HOST):$(PORT)"},
		{"URL", "http://$(ADDRESS)/$(LATE)"},
		{"PORT", "1$(PORT)"},
	}
	variables := map[string]string{}
	mapping := MappingFuncFor(nil, variables)
	for _, v := range declared {
		variables[v.name] = Expand(v.value, mapping)
	}
	want := map[string]string{
		"LATE": "$(HOST)", "HOST": "example.com", "PORT": "18080", "ADDRESS": "example.com:8080",
		"URL": "http://example.com:8080/$(HOST)",
	}
	if !reflect.DeepEqual(variables, want) {
		t.Errorf("want %q, got %q", want, variables)
	}
}

func TestEachNameWithoutAValueIsAnEvent(t *testing.T) {
	recorder := &fakeRecorder{}
	Expand("$(A) $(MISSING) $$(ESCAPED) $(UNCLOSED", MappingFuncFor(ObjectEventRecorderFor(aPod, recorder), map[string]string{"A": "secret"}))
	recorder.expect(t, "Warning UnexpandedVariableReferences Could not expand $(MISSING)")
}
