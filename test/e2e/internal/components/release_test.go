package components

import "testing"

func TestStateIn(t *testing.T) {
	for _, test := range []struct {
		release, gate  string
		own, locked    bool
		wantNoSuchGate bool
	}{
		{release: "v1.29.15+podenv.29", gate: "EnvFiles", own: true},
		{release: "v1.33.13+podenv.25.dirty", gate: "EnvFiles", own: true},
		{release: "v1.34.10+podenv.15", gate: "EnvFiles"},
		{release: "v1.34.10", gate: "EnvFiles"},
		{release: "v1.29.15+podenv.29", gate: "RelaxedEnvironmentVariableValidation", own: true},
		{release: "v1.33.13", gate: "RelaxedEnvironmentVariableValidation"},
		{release: "v1.34.10", gate: "RelaxedEnvironmentVariableValidation", locked: true},
		{release: "v1.34.10", gate: "VariableExpansionEvents", own: true},
		{release: "v1.28.0", gate: "EnvFiles", wantNoSuchGate: true},
		{release: "v1.34.10", gate: "NoSuchGate", wantNoSuchGate: true},
	} {
		t.Run(test.release+" "+test.gate, func(t *testing.T) {
			state, known := StateIn(test.release, test.gate)
			if known == test.wantNoSuchGate {
				t.Fatalf("known: %t", known)
			}
			if state.Carried != test.own || state.Spec.LockToDefault != test.locked {
				t.Errorf("own %t, locked %t: want %t, %t", state.Carried, state.Spec.LockToDefault, test.own, test.locked)
			}
		})
	}
}

func TestQuoteValues(t *testing.T) {
	for text, want := range map[string]string{
		"A=1\nB=2\n":                   "A='1'\nB='2'\n",
		"A=1":                          "A='1'",
		"A=b=c\n":                      "A='b=c'\n",
		"A=\n=3\n":                     "A=''\n='3'\n",
		"\n# B=2\nno declaration\nA=1": "\n# B=2\nno declaration\nA='1'",
	} {
		if got := quoteValues(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
