package envfile

import (
	"errors"
	"regexp"
	"sort"
	"strings"
	"testing"
	"unicode/utf8"
)

var (
	naiveStrictName  = regexp.MustCompile(`^([-_a-zA-Z]|\.[-_a-zA-Z0-9])[-._a-zA-Z0-9]*$`)
	naiveRelaxedName = regexp.MustCompile(`^[ -<>-~]+$`)
)

func naiveName(relaxed bool) *regexp.Regexp {
	if relaxed {
		return naiveRelaxedName
	}
	return naiveStrictName
}

// naiveText checks what holds for a file in either form.
func naiveText(file string) *Error {
	if len(file) > MaxFileBytes {
		return &Error{Reason: ReasonLimitExceeded}
	}
	if strings.HasPrefix(file, "\uFEFF") || strings.Contains(file, "\x00") || !utf8.ValidString(file) {
		return &Error{Reason: ReasonInvalidSyntax}
	}
	return nil
}

// naiveParse reads an env file in the form DotEnv rule by rule, with no thought for speed. It
// shares no code with Parse but the limits.
func naiveParse(file string, relaxed bool) (map[string]string, *Error) {
	const blanks = " \t\v\f"
	if err := naiveText(file); err != nil {
		return nil, err
	}
	validName := naiveName(relaxed)
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
			// After the last line ending there is no line.
			if i == len(lines) || i == len(lines)-1 && strings.HasSuffix(file, "\n") {
				return nil, &Error{Reason: ReasonInvalidSyntax, Line: i}
			}
			if lines[i] == "" || strings.HasPrefix(lines[i], "#") {
				return nil, &Error{Reason: ReasonInvalidSyntax, Line: i + 1}
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
		"\uFEFFA=1", "A=\x00", "A=\xff", "A=\r\r\n", "A=b\\ \r\n c\\\n\nd", "9 \"'=x=y", strings.Repeat("n", 129) + "=", strings.Repeat("n", 128) + "=", "A=1\nB=2\nA=\\\n3", "B=2 \nA=1\nC=\n", "A= \r\nB=\r\nC=\\\r\n#",
		strings.Repeat("x", 31) + "=\xc3\xa4\n" + strings.Repeat("y", 40) + "=\xc3", "\n\nA=" + strings.Repeat(" ", 40) + "\x00",
	} {
		f.Add(file, false)
		f.Add(file, true)
	}
	f.Fuzz(agreesWithNaiveParse)
}

func agreesWithNaiveParse(t *testing.T, file string, relaxed bool) {
	t.Helper()
	agrees(t, file, Options{RelaxedNames: relaxed}, naiveParse)
}

// agrees compares Parse with naive.
func agrees(t *testing.T, file string, opts Options, naive func(file string, relaxed bool) (map[string]string, *Error)) {
	t.Helper()
	want, wantErr := naive(file, opts.RelaxedNames)
	var keys []string
	for key := range want {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	keys = append(keys, "A", "B", "missing")
	got, err := Parse([]byte(file), keys, opts)
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
	if len(file) > MaxFileBytes {
		t.Fatalf("a file of %d bytes is accepted", len(file))
	}
	for _, key := range keys {
		value, err := got.Lookup(key)
		if len(value) > MaxValueBytes || err == nil && len(key) > MaxNameBytes {
			t.Fatalf("a name of %d bytes with a value of %d is accepted", len(key), len(value))
		}
		wantValue, defined := want[key]
		if defined != (err == nil) || value != wantValue {
			t.Fatalf("%q: want %q (%v), got %q, %v", key, wantValue, defined, value, err)
		}
	}
}

// A fuzzer seldom comes near the limits of a value and a file.
func TestParseAgreesWithNaiveParseAtTheLimits(t *testing.T) {
	long := func(n int) string { return strings.Repeat("v", n) }
	var files []string
	for _, more := range []int{-1, 0, 1} {
		files = append(files,
			long(MaxNameBytes+more)+"=1\n",
			" "+long(MaxNameBytes+more)+"  =1\n",
			"A="+long(MaxValueBytes+more)+"\n",
			"A=  "+long(MaxValueBytes+more)+"  \r\n",
			"A="+long(MaxValueBytes-1+more)+"  \\\n\\\n \\\n",
			"A="+long(MaxValueBytes-2+more)+"  \\\n  v",
			"A=\\\n"+long(MaxValueBytes-2+more)+"\\\n\\\nv\n",
			"A=1\n#"+long(MaxFileBytes-5+more),
			"A=1\n"+strings.Repeat("\n", MaxFileBytes-4+more),
			"A="+long(MaxValueBytes)+"\nB="+long(MaxFileBytes-MaxValueBytes-5+more),
		)
	}
	for _, file := range files {
		agreesWithNaiveParse(t, file, false)
		agreesWithNaiveParse(t, file, true)
	}
}
