package run

import (
	"runtime"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdtesting "k8s.io/kubectl/pkg/cmd/testing"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// kubectl run warns of names that strict validation refuses, and sends them:
// the server decides.
func TestRunSpecialEnvVarNames(t *testing.T) {
	testCases := []struct {
		name    string
		env     string
		want    string // the variable's name in the pod
		wantErr string // on stderr: a warning, or the error
	}{
		{name: "an ordinary name", env: "MY_ENV.NAME-1=x", want: "MY_ENV.NAME-1"},
		{
			name: "a special name", env: "Logging:LogLevel:Default=x", want: "Logging:LogLevel:Default",
			wantErr: "Warning: \"Logging:LogLevel:Default\" can be the name of an environment variable only in a cluster with the feature gate RelaxedEnvironmentVariableValidation\n",
		},
		{name: "a name that no server accepts", env: "Ä=x", wantErr: "error: invalid env: Ä=x"},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			tf := cmdtesting.NewTestFactory().WithNamespace("ns")
			defer tf.Cleanup()
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			cmdutil.BehaviorOnFatal(func(message string, code int) {
				errOut.WriteString(message)
				runtime.Goexit()
			})
			defer cmdutil.DefaultBehaviorOnFatal()

			cmd := NewCmdRun(tf, streams)
			for flag, value := range map[string]string{"dry-run": "client", "image": "busybox", "env": tc.env, "output": "jsonpath={.spec.containers[0].env[*].name}"} {
				if err := cmd.Flags().Set(flag, value); err != nil {
					t.Fatal(err)
				}
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				cmd.Run(cmd, []string{"test"})
			}()
			<-ended

			if got := out.String(); got != tc.want {
				t.Errorf("want variable %q, got %q", tc.want, got)
			}
			if got := errOut.String(); got != tc.wantErr {
				t.Errorf("want on stderr %q, got %q", tc.wantErr, got)
			}
		})
	}
}
