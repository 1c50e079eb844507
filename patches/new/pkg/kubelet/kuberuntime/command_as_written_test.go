package kuberuntime

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

func TestErrorsOfTheRuntimeShowTheCommandAsWritten(t *testing.T) {
	testCases := []struct {
		name                      string
		command, args             []string
		expandedCommand, expanded []string
		err                       error
		want                      string
	}{
		{
			name: "a word of the command", command: []string{"$(A)"}, expandedCommand: []string{"s3cr3t"},
			err:  grpcstatus.Error(codes.Unknown, `exec: "s3cr3t": executable file not found in $PATH: unknown`),
			want: `exec: "$(A)": executable file not found in $PATH: unknown`,
		},
		{
			name: "a part of a word", command: []string{"/bin/$(A)"}, expandedCommand: []string{"/bin/s3cr3t"},
			err:  grpcstatus.Error(codes.Unknown, "stat /bin/s3cr3t: no such file or directory"),
			want: "stat /bin/$(A): no such file or directory",
		},
		{
			name: "a word of the args, of an image with no entrypoint", args: []string{"$(A)"}, expanded: []string{"s3cr3t"},
			err:  grpcstatus.Error(codes.Unknown, `exec: "s3cr3t": permission denied`),
			want: `exec: "$(A)": permission denied`,
		},
		{
			name: "a word that has to be quoted", command: []string{"$(A)"}, expandedCommand: []string{"s3\"cr\n3t"},
			err:  grpcstatus.Error(codes.Unknown, `exec: "s3\"cr\n3t": not found`),
			want: `exec: "$(A)": not found`,
		},
		{
			name: "such a word, which the runtime did not quote", command: []string{"$(A)"}, expandedCommand: []string{"s3\"cr\n3t"},
			err:  grpcstatus.Error(codes.Unknown, "exec: s3\"cr\n3t: not found"),
			want: `exec: $(A): not found`,
		},
		{
			name: "a word that is not UTF-8, which the runtime has as JSON", command: []string{"$(A)"}, expandedCommand: []string{"s3cr3t\xff\xfe"},
			err:  grpcstatus.Error(codes.Unknown, "exec: \"s3cr3t\ufffd\ufffd\": stat s3cr3t\ufffd\ufffd: not found"),
			want: `exec: "$(A)": stat $(A): not found`,
		},
		{
			name: "more words than the pod has", command: []string{"$(A)"}, expandedCommand: []string{"s3cr3t", "more"},
			err:  grpcstatus.Error(codes.Unknown, "s3cr3t more"),
			want: "$(A) more",
		},
		{
			name: "a short word is replaced as a word only", command: []string{"$(A)"}, expandedCommand: []string{"e"},
			err:  grpcstatus.Error(codes.Unknown, `failed to create: exec: "e": not found`),
			want: `failed to create: exec: "$(A)": not found`,
		},
		{
			name: "the longest word first", command: []string{"$(A)", "$(B)"}, expandedCommand: []string{"s3cr3t", "s3cr3t/more"},
			err:  grpcstatus.Error(codes.Unknown, "s3cr3t/more s3cr3t"),
			want: "$(B) $(A)",
		},
		{
			name: "nothing is expanded", command: []string{"sh"}, expandedCommand: []string{"sh"},
			err:  grpcstatus.Error(codes.Unknown, `exec: "sh": not found`),
			want: `exec: "sh": not found`,
		},
		{
			name: "a shell's script, in which nothing is expanded", command: []string{"/nope", "-c", "$(date)"}, expandedCommand: []string{"/nope", "-c", "$(date)"},
			err:  grpcstatus.Error(codes.Unknown, `exec: "/nope": stat /nope: no such file or directory, args $(date)`),
			want: `exec: "/nope": stat /nope: no such file or directory, args $(date)`,
		},
		{
			name: "an escaped reference, in which nothing is expanded", command: []string{"$$(A)"}, expandedCommand: []string{"$(A)"},
			err:  grpcstatus.Error(codes.Unknown, `exec: "$(A)": not found`),
			want: `exec: "$(A)": not found`,
		},
		{
			name: "no error of gRPC", command: []string{"$(A)"}, expandedCommand: []string{"s3cr3t"},
			err:  errors.New("s3cr3t failed"),
			want: "$(A) failed",
		},
		{
			name: "a value that is empty", command: []string{"$(A)"}, expandedCommand: []string{""},
			err:  grpcstatus.Error(codes.Unknown, "no command specified"),
			want: "no command specified",
		},
		{
			name:            "a value that is part of another word",
			command:         []string{"/nope"},
			args:            []string{"$(DIR)", "$(DIR)/"},
			expandedCommand: []string{"/nope"},
			expanded:        []string{"/", "//"},
			err:             grpcstatus.Error(codes.Unknown, `exec: "/nope": stat /nope: args // and /`),
			want:            `exec: "/nope": stat /nope: args $(DIR)/ and $(DIR)`,
		},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			container := &v1.Container{Command: tc.command, Args: tc.args}
			config := &runtimeapi.ContainerConfig{Command: tc.expandedCommand, Args: tc.expanded}

			err := withCommandAsWritten(tc.err, container, config)

			got, _ := grpcstatus.FromError(err)
			assert.Equal(t, tc.want, got.Message())
			want, _ := grpcstatus.FromError(tc.err)
			assert.Equal(t, want.Code(), got.Code())
			if tc.want == want.Message() {
				assert.Same(t, tc.err, err)
			}
		})
	}
	assert.NoError(t, withCommandAsWritten(nil, &v1.Container{}, &runtimeapi.ContainerConfig{}))
}

// Words and message are the pod's, and it starts again and again.
func TestAMessageIsNotSearchedForTooManyWords(t *testing.T) {
	var words, expanded, others []string
	for i := 0; i < 100_000; i++ {
		word := strconv.Itoa(100_000 + i)
		words, expanded, others = append(words, "$(A)"+word), append(expanded, "x"+word), append(others, "x"+word)
	}
	long := strings.Repeat("x100000 ", 1000)
	for name, tc := range map[string]struct {
		words, expanded []string
		message, want   string
	}{
		"many expanded":                   {words, expanded, "x100000", MessageNotShown},
		"many beside one":                 {append([]string{"$(A)"}, others...), append([]string{"s3cr3t"}, others...), long + "s3cr3t", long + "$(A)"},
		"many of which one is part":       {append([]string{"$(A)"}, others...), append([]string{"x1"}, others...), long, MessageNotShown},
		"one of many, and a long message": {[]string{"$(A)"}, []string{"x100000"}, strings.Repeat(long, 100), strings.Repeat("$(A) ", 100_000)},
	} {
		if got := MessageWithWordsAsWritten(tc.message, tc.words, tc.expanded); got != tc.want {
			t.Errorf("%s: %.100s", name, got) // the messages are long
		}
	}
}

func TestWordsAreReplacedWhole(t *testing.T) {
	words := map[string]string{"s": "$(A)", "/p": "$(B)", "q/": "$(C)"}
	assert.Equal(t, "$(A) $(A)-$(A) ($(A)) s1 1s s_ _s sé és", replaceWords("s s-s (s) s1 1s s_ _s sé és", words))
	assert.Equal(t, "x$(B)/ /px $(C)x xq/ $(B)", replaceWords("x/p/ /px q/x xq/ /p", words))
}

// The kubelet keeps many of them.
func TestMessageOfStartIsAsLongAsOneOfAContainer(t *testing.T) {
	value := strings.Repeat("é", kubecontainer.MaxContainerTerminationMessageLength)
	container := &v1.Container{Command: []string{"$(A)"}}
	failed := grpcstatus.Error(codes.Unknown, "s3cr3t "+value)
	assert.ErrorContains(t, startErrorAsWritten(failed, "long", container, &runtimeapi.ContainerConfig{Command: []string{"s3cr3t"}}), value)

	got, known := MessageOfStart("long", "")
	assert.True(t, known)
	assert.Equal(t, "$(A) "+value[:kubecontainer.MaxContainerTerminationMessageLength-len("$(A) ")-1]+"...", got)
}

// The runtime returns its message with each status of a container that never ran.
func TestMessageOfStart(t *testing.T) {
	const message = `exec: "s3cr3t": not found`
	failed := grpcstatus.Error(codes.Unknown, message)
	container := &v1.Container{Command: []string{"$(A)"}, Args: []string{"$(date)"}}
	expanded := &runtimeapi.ContainerConfig{Command: []string{"s3cr3t"}, Args: []string{"$(date)"}}
	assert.Error(t, startErrorAsWritten(failed, "expanded", container, expanded))
	assert.Error(t, startErrorAsWritten(failed, "nothing expanded", &v1.Container{Args: container.Args}, &runtimeapi.ContainerConfig{Args: expanded.Args}))
	assert.NoError(t, startErrorAsWritten(nil, "started", container, expanded))

	for _, tc := range []struct {
		id, message, want string
		known             bool
	}{
		{id: "expanded", want: `exec: "$(A)": not found`, known: true},
		{id: "nothing expanded", want: message, known: true},
		{id: "started", want: message},
		{id: "of another kubelet", want: message},
		{id: "nothing expanded", message: "as the runtime says it later", want: "as the runtime says it later", known: true},
	} {
		if tc.message == "" {
			tc.message = message
		}
		got, known := MessageOfStart(tc.id, tc.message)
		assert.Equal(t, tc.known, known, tc.id)
		assert.Equal(t, tc.want, got, tc.id)
	}
}
