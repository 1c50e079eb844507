package versioned

import "testing"

func TestParseEnvsSpecialNames(t *testing.T) {
	testCases := []struct {
		name     string
		env      string
		wantName string
		wantErr  string
	}{
		{name: "a leading digit", env: "1ST=x", wantName: "1ST"},
		{name: "colons and a space", env: "Logging:Log Level=x", wantName: "Logging:Log Level"},
		{name: "a tab", env: "A\tB=x", wantErr: "invalid env: A\tB=x"},
		{name: "a letter outside of ASCII", env: "Ä=x", wantErr: "invalid env: Ä=x"},
		{name: "no name", env: "=x", wantErr: "invalid env: =x"},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parseEnvs([]string{tc.env})
			if tc.wantErr != "" {
				if err == nil || err.Error() != tc.wantErr {
					t.Errorf("want error %q, got: %v", tc.wantErr, err)
				}
				return
			}
			if err != nil || len(got) != 1 || got[0].Name != tc.wantName || got[0].Value != "x" {
				t.Errorf("want %q, got %v, %v", tc.wantName, got, err)
			}
		})
	}
}
