package expansion

import (
	"fmt"
	"strings"
	"testing"
)

const (
	prefix = "Warning UnexpandedVariableReferences Container app has references that could not be expanded: "
	suffix = ". Declare a variable before it is referred to, or write $$(NAME) to mean $(NAME) itself"
)

// start is what the kubelet does for one start of a container: env is NAME=VALUE,
// and a variable without "=" is optional and not there.
func start(env, command, args []string) *fakeRecorder {
	recorder := &fakeRecorder{}
	references := NewUnexpandedReferences("app", ObjectEventRecorderFor(aPod, recorder))
	variables := map[string]string{}
	for _, declaration := range env {
		name, value, ok := strings.Cut(declaration, "=")
		if !ok {
			continue
		}
		variables[name] = Expand(value, MappingFuncFor(references.InEnv(name), variables))
	}
	for _, c := range command {
		Expand(c, MappingFuncFor(references.InCommand(), variables))
	}
	for _, a := range args {
		Expand(a, MappingFuncFor(references.InArgs(), variables))
	}
	references.Record()
	return recorder
}

func TestOneEventForOneStartOfAContainer(t *testing.T) {
	for _, tc := range []struct {
		name               string
		env, command, args []string
		want               string // between prefix and suffix; empty for no event
	}{
		{
			name:    "nothing to say where every reference is expanded",
			env:     []string{"A=1", "B=$(A)"},
			command: []string{"$(B)"},
			args:    []string{"$(A)", "$(B)"},
		},
		{
			name: "the name and the variable that refers to it",
			env:  []string{"URL=http://$(HOST):$(PORT)/$(HOST)"},
			want: "$(HOST) (env URL), $(PORT) (env URL)",
		},
		{
			name:    "every place, in the order of the container",
			env:     []string{"URL=$(HOST)"},
			command: []string{"run", "$(HOST)", "$(HOST)$(PORT)"},
			args:    []string{"$(HOST)"},
			want:    "$(HOST) (env URL, command, args), $(PORT) (command)",
		},
		{
			name: "a variable that is declared later",
			env:  []string{"B=$(A)", "A=1", "C=$(A)"},
			want: "$(A) (env B)",
		},
		{
			name: "a variable that refers to itself",
			env:  []string{"PATH=$(PATH):/bin"},
			want: "$(PATH) (env PATH)",
		},
		{
			name: "no value, though it looks like a reference",
			env:  []string{"A=$$(PASSWORD)", "B=$(A)"},
			args: []string{"$(B)"},
		},
		{
			name: "escapes and malformed input are nobody's mistake",
			env:  []string{"A=$$(X) $(Y", "B=$Z ${Z} $"},
			args: []string{"$$(X)", "(X)", "$("},
		},
		{
			name: "an optional variable that is not set",
			env:  []string{"OPTIONAL", "URL=$(OPTIONAL)/$(OPTIONAL_)"},
			args: []string{"--x=$(OPTIONAL)"},
			want: "$(OPTIONAL) (env URL, args), $(OPTIONAL_) (env URL)",
		},
		{
			name: "ten names, then a count",
			args: []string{"$(A)$(B)$(C)$(D)$(E)$(F)$(G)$(H)$(I)$(J)$(K)$(A)$(K)"},
			want: "$(A) (args), $(B) (args), $(C) (args), $(D) (args), $(E) (args), $(F) (args), $(G) (args), $(H) (args), $(I) (args), $(J) (args) and 1 more",
		},
		{
			name: "three places of a name, then a count",
			env:  []string{"A=$(X)", "B=$(X)", "C=$(X)", "D=$(X)", "E=$(X)"},
			want: "$(X) (env A, env B, env C, 2 more)",
		},
		{
			name: "64 bytes are shown",
			args: []string{"$(" + strings.Repeat("a", 61) + ") $(" + strings.Repeat("b", 62) + ")"},
			want: "$(" + strings.Repeat("a", 61) + ") (args), $(" + strings.Repeat("b", 62) + "... (args)",
		},
		{
			name: "a command of a shell, cut",
			args: []string{"echo $(date +%s) $(" + strings.Repeat("a", 100) + ")"},
			want: "$(date +%s) (args), $(" + strings.Repeat("a", 62) + "... (args)",
		},
		{
			name: "what no variable can be called",
			args: []string{"$() $(A=1 date) $(date\n) $(GRÖSSE) $(\xff) $(A\x00)"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			recorder := start(tc.env, tc.command, tc.args)
			if tc.want == "" {
				recorder.expect(t)
				return
			}
			recorder.expect(t, prefix+tc.want+suffix)
		})
	}
}

// The same message counts as the same event: a container in a crash loop adds one
// to a series.
func TestEveryRestartSaysTheSame(t *testing.T) {
	var env []string
	for i := 0; i < 50; i++ {
		env = append(env, fmt.Sprintf("V%d=$(X%d)$(Y%d)", i, i, i%7))
	}
	first := start(env, nil, nil)
	if len(first.events) != 1 {
		t.Fatalf("want one event, got %q", first.events)
	}
	for i := 0; i < 10; i++ {
		start(env, nil, nil).expect(t, first.events...)
	}
}

// events.k8s.io/v1 refuses a longer note.
func TestAMessageIsAtMost1024Bytes(t *testing.T) {
	var env []string
	for i := 0; i < 20; i++ {
		name := strings.Repeat("N", 100)
		env = append(env, fmt.Sprintf("%s%d=$(%s%d)", name, i, strings.Repeat("A", 1000), i%12))
	}
	recorder := &fakeRecorder{}
	references := NewUnexpandedReferences(strings.Repeat("c", 63), ObjectEventRecorderFor(aPod, recorder))
	for _, declaration := range env {
		name, value, _ := strings.Cut(declaration, "=")
		Expand(value, MappingFuncFor(references.InEnv(name)))
	}
	if message := references.message(); len(message) > 1024 || !strings.Contains(message, " more. ") {
		t.Errorf("%d bytes: %s", len(message), message)
	}
}

// Gate off: the kubelet has no collection.
func TestWithoutACollectionNothingIsReported(t *testing.T) {
	var references *UnexpandedReferences
	for _, recorder := range []ObjectEventRecorder{references.InEnv("A"), references.InCommand(), references.InArgs()} {
		if got := Expand("$(X)", MappingFuncFor(recorder)); got != "$(X)" {
			t.Errorf("got %q", got)
		}
	}
	references.Record()
}

// A place is a recorder like any other to those who do not know it.
func TestAPlaceRecordsEventsOfItsObject(t *testing.T) {
	recorder := &fakeRecorder{}
	NewUnexpandedReferences("app", ObjectEventRecorderFor(aPod, recorder)).InArgs().Eventf("Normal", "Reason", "%d", 1)
	recorder.expect(t, "Normal Reason 1")
}
