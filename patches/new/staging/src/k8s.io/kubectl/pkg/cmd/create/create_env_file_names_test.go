package create

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// kubectl create --from-env-file warns of keys that strict validation refuses
// as names of variables. What it refuses are keys that the server refuses too.
func TestCreateFromEnvFileSpecialNames(t *testing.T) {
	const warning = "Warning: %q can be the name of an environment variable only in a cluster with the feature gate RelaxedEnvironmentVariableValidation\n"
	testCases := []struct {
		name        string
		file        string
		want        []string
		wantWarning string
		wantErr     string // KIND is for the refusal of the kind
	}{
		{name: "ordinary names", file: "MY_ENV.NAME-1=x\nB=x\n", want: []string{"B", "MY_ENV.NAME-1"}},
		{name: "names with a leading digit", file: "1ST=x\nB=x\n007=x\n", want: []string{"007", "1ST", "B"}, wantWarning: fmt.Sprintf(warning+warning, "007", "1ST")},
		{
			name: "a name that no key can have", file: "Logging:LogLevel=x\n",
			wantErr: `"Logging:LogLevel" is not KIND a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')`,
		},
		{
			name: "a name that no variable can have", file: "Ä=x\n",
			wantErr: `"Ä" is not a valid key name: a valid environment variable name must consist only of printable ASCII characters other than '='`,
		},
	}
	kinds := []struct {
		name    string
		refusal string
		create  func(genericiooptions.IOStreams, string) ([]string, error)
	}{
		{"ConfigMap", "a valid key name for a ConfigMap:", func(streams genericiooptions.IOStreams, file string) ([]string, error) {
			o := NewConfigMapOptions(streams)
			o.Name, o.EnvFileSources = "source", []string{file}
			configMap, err := o.createConfigMap()
			if err != nil {
				return nil, err
			}
			return sets.List(sets.KeySet(configMap.Data)), nil
		}},
		{"Secret", "valid key name for a Secret", func(streams genericiooptions.IOStreams, file string) ([]string, error) {
			o := NewSecretOptions(streams)
			o.Name, o.EnvFileSources = "source", []string{file}
			secret, err := o.createSecret()
			if err != nil {
				return nil, err
			}
			return sets.List(sets.KeySet(secret.Data)), nil
		}},
	}
	for _, kind := range kinds {
		for _, tc := range testCases {
			t.Run(kind.name+"/"+tc.name, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "env")
				if err := os.WriteFile(file, []byte(tc.file), 0o600); err != nil {
					t.Fatal(err)
				}
				streams, _, _, errOut := genericiooptions.NewTestIOStreams()
				got, err := kind.create(streams, file)

				if tc.wantErr != "" {
					wantErr := strings.ReplaceAll(tc.wantErr, "KIND", kind.refusal)
					if err == nil || err.Error() != wantErr {
						t.Errorf("want error %q, got: %v", wantErr, err)
					}
				} else if err != nil || !slices.Equal(got, tc.want) {
					t.Errorf("want keys %q, got %q, %v", tc.want, got, err)
				}
				if errOut.String() != tc.wantWarning {
					t.Errorf("want on stderr %q, got %q", tc.wantWarning, errOut.String())
				}
			})
		}
	}
}
