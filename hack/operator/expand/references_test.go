package expand

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnvWithoutACluster(t *testing.T) {
	for _, tc := range []struct {
		name string
		env  string
		want []string
	}{
		{
			name: "a reference to a variable declared before",
			env:  `[{name: A, value: a}, {name: B, value: "$(A)b"}, {name: C, value: "$(B)c"}]`,
			want: []string{"A=a", "B=ab", "C=abc"},
		},
		{
			name: "a reference to a variable declared later",
			env:  `[{name: B, value: "$(A)"}, {name: A, value: a}]`,
			want: []string{"B=$(A)", "unexpanded A declared_later", "A=a"},
		},
		{
			name: "a variable that refers to itself",
			env:  `[{name: PATH, value: "$(PATH):/bin"}]`,
			want: []string{"PATH=$(PATH):/bin", "unexpanded PATH refers_to_itself"},
		},
		{
			name: "a variable declared twice can refer to its first value",
			env:  `[{name: A, value: a}, {name: B, value: b}, {name: A, value: "$(A)2"}]`,
			want: []string{"B=b", "A=a2"},
		},
		{
			name: "a misspelt name, whether the right one comes before or later",
			env:  `[{name: DATABASE, value: a}, {name: URL, value: "$(DATABSAE) $(PASSWRD)"}, {name: PASSWORD, value: b}]`,
			want: []string{"DATABASE=a", "URL=$(DATABSAE) $(PASSWRD)", "unexpanded DATABSAE misspeltDATABASE", "unexpanded PASSWRD misspeltPASSWORD", "PASSWORD=b"},
		},
		{
			name: "the name that is meant is never the variable's own",
			env:  `[{name: HOST, value: "$(HOTS) $(PORT)"}, {name: PORTS, value: "$(PORT)"}]`,
			want: []string{"HOST=$(HOTS) $(PORT)", "unexpanded HOTS not_declared", "unexpanded PORT misspeltPORTS", "PORTS=$(PORT)", "unexpanded PORT not_declared"},
		},
		{
			name: "a name that nothing is close to",
			env:  `[{name: A, value: "$(DATE) $(DATE)"}]`,
			want: []string{"A=$(DATE) $(DATE)", "unexpanded DATE not_declared"},
		},
		{
			name: "what no variable can be called",
			env:  `[{name: A, value: "$() $(B=1 date) $(date\n) $(GRÖSSE)"}]`,
			want: []string{"A=$() $(B=1 date) $(date\n) $(GRÖSSE)"},
		},
		{
			name: "escapes and what is no reference",
			env:  `[{name: A, value: "$$(X) $(X ${X} $X"}]`,
			want: []string{"A=$(X) $(X ${X} $X"},
		},
		{
			name: "a value that looks like a reference is not expanded again",
			env:  `[{name: A, value: "$$(B)"}, {name: B, value: "$(A)"}]`,
			want: []string{"A=$(B)", "B=$(B)"},
		},
		{
			name: "what may be a service's variable is not known, and what has it in it is not",
			env:  `[{name: URL, value: "http://$(GIT_SERVICE_HOST):$(GIT_PORT_80_TCP_PORT)"}, {name: B, value: "$(URL)"}]`,
			want: []string{
				"URL=http://<unknown GIT_SERVICE_HOST>:<unknown GIT_PORT_80_TCP_PORT>", "unknown GIT_SERVICE_HOST", "unknown GIT_PORT_80_TCP_PORT",
				"B=http://<unknown GIT_SERVICE_HOST>:<unknown GIT_PORT_80_TCP_PORT>", "unknown URL",
			},
		},
		{
			name: "sources that a cluster has",
			env: `[{name: A, valueFrom: {configMapKeyRef: {name: app, key: k}}}, {name: B, valueFrom: {secretKeyRef: {name: app, key: k, optional: true}}},
        {name: C, valueFrom: {fileKeyRef: {volumeName: v, path: p, key: k}}}, {name: D, value: "$(A)$(B)$(C)"}]`,
			want: []string{
				"A=<unknown A>", "unknown A", "B=<unknown B>", "unknown B", "C=<unknown C>", "unknown C",
				"D=<unknown A><unknown B><unknown C>", "unknown A", "unknown B", "unknown C",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, container(t, nil, "env: "+tc.env).env()); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

func TestCommandAndArgsFindEveryVariable(t *testing.T) {
	c := container(t, nil, `env: [{name: A, value: "$(B)"}, {name: B, value: b}]`, `command: [run, "$(A)", "$(B)"]`, `args: ["--x=$(C)"]`)
	want := []Text{{Value: "run"}, {Value: "$(B)"}, {Value: "b"}}
	if diff := cmp.Diff(want, c.Command); diff != "" {
		t.Errorf("command: want -, got +:\n%s", diff)
	}
	if len(c.Args) != 1 || c.Args[0].Value != "--x=$(C)" || !cmp.Equal(brief(c.Args[0].Findings), []string{"unexpanded C misspeltA"}) {
		t.Errorf("args: got %+v", c.Args)
	}
}

func TestWhatAProcessCannotBeGiven(t *testing.T) {
	env := `env: [{name: A, value: "` + strings.Repeat("a", 1000) + `"}, {name: B, value: "` + strings.Repeat("$(A)", 100) + `"}, {name: C, value: "$(B)$(B)"}`
	c := container(t, nil, env+"]", `args: [run, "$(B)$(B)"]`)
	const of = "the container does not start: cannot expand %s: the result is longer than a process can be given (131071 bytes, with the name of a variable)"
	want := Text{Value: "<too long>", Findings: []Finding{{Type: Fails, Text: fmt.Sprintf(of, "args[1]")}}}
	if diff := cmp.Diff([]Text{{Value: "run"}, want}, c.Args); diff != "" {
		t.Errorf("args: want -, got +:\n%s", diff)
	}
	c = container(t, nil, env+`, {name: D, value: "$(C)"}]`)
	want.Findings[0].Text = fmt.Sprintf(of, `variable "C"`)
	if diff := cmp.Diff(want, c.Env[2].Text); diff != "" {
		t.Errorf("env: want -, got +:\n%s", diff)
	}
	if diff := cmp.Diff(Text{Value: "<too long>"}, c.Env[3].Text); diff != "" {
		t.Errorf("what refers to it: want -, got +:\n%s", diff)
	}
	c = container(t, nil, env+`, {name: C, value: short}]`)
	if diff := cmp.Diff(Text{Value: "short"}, c.Env[2].Text); diff != "" || len(c.Findings) != 0 {
		t.Errorf("one that is defined again: want -, got +:\n%s\n%v", diff, c.Findings)
	}
	env = `env: [{name: A, value: "` + strings.Repeat("a", 100_000) + `"}`
	for i := range 70 {
		env += fmt.Sprintf(`, {name: A%d, value: "$(A)"}`, i)
	}
	c = container(t, nil, env+"]")
	all := []Finding{{Type: Fails, Text: "the container does not start: cannot expand the variables: with what they refer to they are more than a process can be given (6291456 bytes)"}}
	if diff := cmp.Diff(all, c.Findings); diff != "" {
		t.Errorf("all together: want -, got +:\n%s", diff)
	}
	for i := range 70 {
		env += fmt.Sprintf(`, {name: A%d, valueFrom: {fieldRef: {fieldPath: metadata.name}}}`, i)
	}
	if c = container(t, nil, env+"]"); len(c.Findings) != 0 {
		t.Errorf("of which others are in the place: %v", c.Findings)
	}
}

func TestAnEnvFromThatIsNotKnownMaySetAnyNameWithItsPrefix(t *testing.T) {
	c := container(t, nil, `envFrom: [{prefix: APP_, configMapRef: {name: app}}]`, `args: ["$(APP_HOST)", "$(HOST)"]`)
	if got := append(brief(c.Args[0].Findings), brief(c.Args[1].Findings)...); !cmp.Equal(got, []string{"unknown APP_HOST", "unexpanded HOST not_declared"}) {
		t.Errorf("got %q", got)
	}
	if !cmp.Equal(brief(c.Findings), []string{"unknown"}) {
		t.Errorf("the envFrom: got %+v", c.Findings)
	}
}

func TestWhatASourceThatIsNotKnownMaySetIsNotDefinite(t *testing.T) {
	c := container(t, nil, `envFrom: [{configMapRef: {name: app}}]`,
		`env: [{name: JAVA_OPTS, value: "$(JAVA_OPTS) -Xmx1g"}, {name: URL, value: "$(HOST)"}, {name: HOST, value: h}]`)
	want := []string{"JAVA_OPTS=<unknown JAVA_OPTS> -Xmx1g", "unknown JAVA_OPTS", "URL=<unknown HOST>", "unknown HOST", "HOST=h"}
	if diff := cmp.Diff(want, c.env()); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	const text = "$(HOST) is not known: it may be in envFrom ConfigMap app; give a cluster with --kubeconfig to read it; " +
		"otherwise $(HOST) stays: HOST is declared later; move it before URL"
	if got := c.Env[1].Findings[0].Text; got != text {
		t.Errorf("want %s, got %s", text, got)
	}
}

func TestADevicePluginMaySetWhatCommandAndArgsReferTo(t *testing.T) {
	for name, want := range map[string]string{"example.com/gpu": "unknown GPU", "cpu": "unexpanded GPU not_declared", "hugepages-2Mi": "unexpanded GPU not_declared"} {
		c := container(t, nil, `env: [{name: A, value: "$(GPU)"}]`, `args: ["$(GPU)"]`, `resources: {limits: {`+name+`: "1"}}`)
		if got := brief(c.Args[0].Findings); !cmp.Equal(got, []string{want}) {
			t.Errorf("args with %s: want %s, got %s", name, want, got)
		}
		if got := c.env(); !cmp.Equal(got, []string{"A=$(GPU)", "unexpanded GPU not_declared"}) {
			t.Errorf("env with %s: got %s", name, got)
		}
	}
}

// The kubelet reports a reference even if another declaration takes its place.
func TestAnOverriddenDeclarationKeepsItsFinding(t *testing.T) {
	c := container(t, nil, `env: [{name: A, value: "$(DATE)"}, {name: A, value: a}]`)
	if !cmp.Equal(c.env(), []string{"A=a"}) || !cmp.Equal(brief(c.Findings), []string{"unexpanded DATE not_declared"}) {
		t.Errorf("got %q, %+v", c.env(), c.Findings)
	}
}

func TestNearest(t *testing.T) {
	names := []string{"HOST", "PORT", "DATABASE_PASSWORD", "MQ_SERVICE_HOST", "x"}
	for name, want := range map[string]string{
		"HSOT": "HOST", "host": "HOST", "HOSTS": "HOST", "OST": "HOST", "MOST": "HOST", "COAST": "",
		"DATABSE_PASWORD": "DATABASE_PASSWORD", "DATABASE_URL": "", "": "x", "POST": "HOST",
		"DATABSAE_PASWORD": "DATABASE_PASSWORD", "DB_SERVICE_HOST": "", "M_SERVICE_HOST": "MQ_SERVICE_HOST",
	} {
		if got := nearest(name, names); got != want {
			t.Errorf("%q: want %q, got %q", name, want, got)
		}
	}
}
