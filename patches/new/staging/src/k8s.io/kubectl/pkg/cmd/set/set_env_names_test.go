package set

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/rest/fake"
	cmdtesting "k8s.io/kubectl/pkg/cmd/testing"
	"k8s.io/kubectl/pkg/scheme"
)

// kubectl set env warns of names that strict validation refuses, and sets them:
// the server decides.
func TestSetEnvSpecialNames(t *testing.T) {
	const warning = "Warning: %q can be the name of an environment variable only in a cluster with the feature gate RelaxedEnvironmentVariableValidation\n"
	testCases := []struct {
		name        string
		args        []string
		stdin       string
		wantNames   []string
		wantWarning string
		wantErr     string
	}{
		{name: "an ordinary name", args: []string{"MY_ENV.NAME-1=x"}, wantNames: []string{"MY_ENV.NAME-1"}},
		{
			name: "special names", args: []string{"Logging:LogLevel:Default=x", "1ST=x"}, wantNames: []string{`Logging:LogLevel:Default`, "1ST"},
			wantWarning: fmt.Sprintf(warning+warning, "Logging:LogLevel:Default", "1ST"),
		},
		{name: "a special name from stdin", args: []string{"-"}, stdin: "a b=x\n", wantNames: []string{"a b"}, wantWarning: fmt.Sprintf(warning, "a b")},
		{name: "a name that no server accepts", args: []string{"Ä=x"}, wantErr: `"Ä" is not a valid key name: a valid environment variable name must consist only of printable ASCII characters other than '='`},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			tf := cmdtesting.NewTestFactory().WithNamespace("test")
			defer tf.Cleanup()
			// --local asks no server.
			tf.Client = &fake.RESTClient{}
			tf.ClientConfigVal = &restclient.Config{ContentConfig: restclient.ContentConfig{GroupVersion: &schema.GroupVersion{}}}
			streams, in, out, errOut := genericiooptions.NewTestIOStreams()
			in.WriteString(tc.stdin)
			opts := NewEnvOptions(streams)
			opts.PrintFlags = genericclioptions.NewPrintFlags("").WithDefaultOutput("yaml").WithTypeSetter(scheme.Scheme)
			opts.FilenameOptions = resource.FilenameOptions{Filenames: []string{"../../../testdata/controller.yaml"}}
			opts.Local = true

			require.NoError(t, opts.Complete(tf, NewCmdEnv(tf, streams), tc.args))
			require.NoError(t, opts.Validate())
			err := opts.RunEnv()

			assert.Equal(t, tc.wantWarning, errOut.String())
			if tc.wantErr != "" {
				assert.EqualError(t, err, tc.wantErr)
				return
			}
			require.NoError(t, err)
			for _, name := range tc.wantNames {
				assert.Contains(t, strings.ReplaceAll(out.String(), `"`, ""), "- name: "+name+"\n")
			}
		})
	}
}
