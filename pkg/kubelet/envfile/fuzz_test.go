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

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

var (
	naiveStrictName  = regexp.MustCompile(`^([-_a-zA-Z]|\.[-_a-zA-Z0-9])[-._a-zA-Z0-9]*$`)
	naiveRelaxedName = regexp.MustCompile(`^[ -<>-~]+$`)
)

// naiveParse reads an env file rule by rule, with no thought for speed. It
// shares no code with Parse but the limits.
func naiveParse(file string, relaxed bool) (map[string]string, *Error) {
	const blanks = " \t\v\f"
	if len(file) > MaxFileBytes {
		return nil, &Error{Reason: ReasonLimitExceeded}
	}
	if strings.HasPrefix(file, "\uFEFF") || strings.Contains(file, "\x00") || !utf8.ValidString(file) {
		return nil, &Error{Reason: ReasonInvalidSyntax}
	}
	validName := naiveStrictName
	if relaxed {
		validName = naiveRelaxedName
	}
	lines := strings.Split(strings.ReplaceAll(file, "\r\n", "\n"), "\n")
	for i := range lines {
		lines[i] = strings.Trim(lines[i], blanks)
	}
	defined := map[string]string{}
	for i := 0; i < len(lines); i++ {
		if lines[i] == "" || strings.HasPrefix(lines[i], "#") {
			continue
		}
		number := i + 1
		name, value, found := strings.Cut(lines[i], "=")
		name, value = strings.Trim(name, blanks), strings.Trim(value, blanks)
		if !found || name == "" {
			return nil, &Error{Reason: ReasonInvalidSyntax, Line: number}
		}
		if len(name) > MaxNameBytes {
			return nil, &Error{Reason: ReasonLimitExceeded, Line: number}
		}
		if !validName.MatchString(name) {
			return nil, &Error{Reason: ReasonInvalidName, Line: number}
		}
		for strings.HasSuffix(value, `\`) {
			i++
			if i == len(lines) || lines[i] == "" || strings.HasPrefix(lines[i], "#") {
				return nil, &Error{Reason: ReasonInvalidSyntax, Line: i}
			}
			value = strings.TrimRight(strings.TrimSuffix(value, `\`), blanks) + " " + lines[i]
		}
		value = strings.Trim(value, blanks)
		if len(value) > MaxValueBytes {
			return nil, &Error{Reason: ReasonLimitExceeded, Line: number}
		}
		defined[name] = value
	}
	return defined, nil
}

func FuzzParse(f *testing.F) {
	for _, file := range []string{
		"", "A=b", "A = b # c\r\n# comment\nB=\n", "A=foo \\\n  bar\n", "A=\\\n\\\nb", "A=b\\\n", "A\\\n=b", "9=1", ". =1", "..a=1", "A=1\nA=2",
		"\uFEFFA=1", "A=\x00", "A=\xff", "A=\r\r\n", "A=b\\ \r\n c\\\n\nd", "9 \"'=x=y", strings.Repeat("n", 129) + "=",
	} {
		f.Add(file, false)
		f.Add(file, true)
	}
	f.Fuzz(func(t *testing.T, file string, relaxed bool) {
		want, wantErr := naiveParse(file, relaxed)
		keys := []string{"A", "B", "missing"}
		for key := range want {
			keys = append(keys, key)
		}
		got, err := Parse([]byte(file), keys, Options{RelaxedNames: relaxed})
		if wantErr != nil {
			var gotErr *Error
			if !errors.As(err, &gotErr) || gotErr.Reason != wantErr.Reason || wantErr.Line != 0 && gotErr.Line != wantErr.Line {
				t.Fatalf("want %s at line %d, got %#v", wantErr.Reason, wantErr.Line, err)
			}
			return
		}
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		for _, key := range keys {
			value, err := got.Lookup(key)
			wantValue, defined := want[key]
			if defined != (err == nil) || value != wantValue {
				t.Fatalf("%q: want %q (%v), got %q, %v", key, wantValue, defined, value, err)
			}
		}
	})
}
