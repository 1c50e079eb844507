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

package envfile

import "strings"

// validName reports whether the API server would accept name as the name of a
// container's variable: k8s.io/apimachinery's IsEnvVarName, or
// IsRelaxedEnvVarName, without a regular expression per line.
func validName(name []byte, relaxed bool) bool {
	if relaxed {
		return validRelaxedName(name)
	}
	return validStrictName(name)
}

func validRelaxedName(name []byte) bool {
	for _, c := range name {
		if c < ' ' || c > '~' || c == '=' {
			return false
		}
	}
	return len(name) > 0
}

func validStrictName(name []byte) bool {
	if len(name) == 0 || isDigit(name[0]) {
		return false
	}
	for _, c := range name {
		if !strictNameByte[c] {
			return false
		}
	}
	if name[0] != '.' {
		return true
	}
	// Today's refusals: a name that could pass for a step out of a directory.
	return len(name) > 1 && name[1] != '.'
}

// strictNameByte is a table because the test runs for every byte of every name.
var strictNameByte = func() (table [256]bool) {
	for c := range table {
		table[c] = isDigit(byte(c)) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("-._", byte(c)) >= 0
	}
	return table
}()

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
