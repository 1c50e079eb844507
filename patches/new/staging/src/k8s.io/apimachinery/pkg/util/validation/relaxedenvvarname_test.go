/*
Copyright 2026 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package validation

import (
	"regexp"
	"testing"
)

// TestIsRelaxedEnvVarName compares with KEP-4369's expression, for every byte
// alone, first, in the middle and last.
func TestIsRelaxedEnvVarName(t *testing.T) {
	valid := regexp.MustCompile("^[ -<>-~]+$")
	names := []string{"", "Logging:LogLevel:Default", "ü", "日本", "a=b", "a\n", "\na"}
	for b := 0; b < 256; b++ {
		c := string([]byte{byte(b)})
		names = append(names, c, c+"ab", "a"+c+"b", "ab"+c)
	}
	for _, name := range names {
		if want, got := valid.MatchString(name), len(IsRelaxedEnvVarName(name)) == 0; got != want {
			t.Errorf("%q: expected valid %t, got %t", name, want, got)
		}
	}
}
