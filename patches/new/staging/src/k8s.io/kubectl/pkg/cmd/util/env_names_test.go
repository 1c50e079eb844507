package util

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestWarnOfEnvVarName(t *testing.T) {
	testCases := []struct {
		name string
		want string
	}{
		{name: "MY_ENV.NAME-1"},
		{name: "1ST", want: "Warning: \"1ST\" can be the name of an environment variable only in a cluster with the feature gate RelaxedEnvironmentVariableValidation\n"},
		{name: `"a`, want: "Warning: \"\\\"a\" can be the name of an environment variable only in a cluster with the feature gate RelaxedEnvironmentVariableValidation\n"},
		{name: "..", want: "Warning: \"..\" can be the name of an environment variable only in a cluster with the feature gate RelaxedEnvironmentVariableValidation\n"},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			var errOut bytes.Buffer
			WarnOfEnvVarName(&errOut, tc.name)
			if got := errOut.String(); got != tc.want {
				t.Errorf("want %q, got %q", tc.want, got)
			}
		})
	}
}

func TestWarnOfAll(t *testing.T) {
	const warnings = "Warning: \"1ST\" can be the name of an environment variable only in a cluster with the feature gate RelaxedEnvironmentVariableValidation\n" +
		"Warning: \"2ND\" can be the name of an environment variable only in a cluster with the feature gate RelaxedEnvironmentVariableValidation\n"
	var ofVariables, ofKeys bytes.Buffer
	WarnOfEnvVars(&ofVariables, []corev1.EnvVar{{Name: "A"}, {Name: "1ST"}, {Name: "2ND"}})
	WarnOfKeys(&ofKeys, map[string]string{"2ND": "", "A": "", "1ST": ""})
	if ofVariables.String() != warnings || ofKeys.String() != warnings {
		t.Errorf("got %q of variables, and %q of keys", ofVariables.String(), ofKeys.String())
	}
}

func TestAddFromEnvFileRefusesWhatNoServerAccepts(t *testing.T) {
	testCases := []struct {
		name    string
		line    string
		wantKey string
		wantErr string
	}{
		{name: "a name that strict validation accepts", line: "MY_ENV.NAME-1=x", wantKey: "MY_ENV.NAME-1"},
		{name: "a leading digit", line: "1ST=x", wantKey: "1ST"},
		{name: "colons and a space", line: "Logging:Log Level=x", wantKey: "Logging:Log Level"},
		{name: "a step out of a directory", line: "..=x", wantKey: ".."},
		{name: "no name", line: "=x", wantErr: `"" is not a valid key name: environment variable name must be non-empty`},
		{name: "a tab", line: "A\tB=x", wantErr: `"A\tB" is not a valid key name: a valid environment variable name must consist only of printable ASCII characters other than '='`},
		{name: "a letter outside of ASCII", line: "Ä=x", wantErr: `"Ä" is not a valid key name: a valid environment variable name must consist only of printable ASCII characters other than '='`},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "env")
			if err := os.WriteFile(file, []byte(tc.line+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			var keys []string
			err := AddFromEnvFile(file, func(key, value string) error {
				keys = append(keys, key)
				return nil
			})
			if tc.wantErr != "" {
				if err == nil || err.Error() != tc.wantErr {
					t.Errorf("want error %q, got: %v", tc.wantErr, err)
				}
				return
			}
			if err != nil || strings.Join(keys, ",") != tc.wantKey {
				t.Errorf("want %q, got %q, %v", tc.wantKey, keys, err)
			}
		})
	}
}
