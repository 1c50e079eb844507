package envfile

import (
	"errors"
	"strings"
	"testing"
)

// parseCase is a file in one of the forms, and what Parse makes of it.
type parseCase struct {
	name    string
	file    string
	relaxed bool
	want    string // "K=value" for each key of A, B and C that is defined, in that order, with ; between
	err     *Error
	line    int
}

func testParse(t *testing.T, syntax Syntax, testCases []parseCase) {
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			keys := []string{"A", "B", "C"}
			values, err := Parse([]byte(tc.file), keys, Options{Syntax: syntax, RelaxedNames: tc.relaxed})
			if tc.err != nil {
				wantError(t, err, tc.err, tc.line)
				return
			}
			if err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			if _, err := values.Lookup("X"); !errors.Is(err, ErrKeyNotFound) {
				t.Errorf("a key that nobody asked for: %v", err)
			}
			var defined []string
			for _, key := range keys {
				if value, err := values.Lookup(key); err == nil {
					defined = append(defined, key+"="+value)
				} else if !errors.Is(err, ErrKeyNotFound) {
					t.Errorf("Lookup(%q): want ErrKeyNotFound, got: %v", key, err)
				}
			}
			if got := strings.Join(defined, ";"); got != tc.want {
				t.Errorf("want %q, got %q", tc.want, got)
			}
		})
	}
}

func TestParse(t *testing.T) {
	long := func(n int) string { return strings.Repeat("v", n) }
	const lineLength = 64
	fullFile := strings.Repeat("#"+strings.Repeat("-", lineLength-2)+"\n", MaxFileBytes/lineLength)

	testParse(t, DotEnv, []parseCase{
		{name: "an empty file defines nothing", file: "", want: ""},
		{name: "a declaration", file: "A=b\n", want: "A=b"},
		{name: "the last line needs no line ending", file: "A=b", want: "A=b"},
		{name: "several declarations", file: "A=1\nB=2\nC=3\n", want: "A=1;B=2;C=3"},
		{name: "names that were not asked for", file: "X=1\nA=2\nAA=3\na=4\n", want: "A=2"},

		{name: "text may be UTF-8", file: "A=grüße 你好\n", want: "A=grüße 你好"},
		{name: "U+FFFD itself is valid", file: "A=\uFFFD\n", want: "A=\uFFFD"},
		{name: "invalid UTF-8 is an error", file: "A=1\n#\nB=\xff\n", err: ErrInvalidSyntax, line: 3},
		{name: "a rune cut short at the end of the file is an error", file: "A=1\nB=\xe4\xbd", err: ErrInvalidSyntax, line: 2},
		{name: "invalid UTF-8 in a comment is an error", file: "A=1\n# \xff\n", err: ErrInvalidSyntax, line: 2},
		{name: "a byte order mark is an error", file: "\xEF\xBB\xBFA=1\n", err: ErrInvalidSyntax, line: 1},
		{name: "a byte order mark alone is an error", file: "\uFEFF", err: ErrInvalidSyntax, line: 1},
		{name: "a surrogate in UTF-8 is an error", file: "A=\xed\xa0\x80\n", err: ErrInvalidSyntax, line: 1},
		{name: "an overlong encoding is an error", file: "A=\xc0\x80\n", err: ErrInvalidSyntax, line: 1},
		{name: "text that is wrong counts before lines that are", file: "oops\nA=\xff\n", err: ErrInvalidSyntax, line: 2},
		{name: "a byte order mark later is just a character", file: "A=\uFEFF1\n", want: "A=\uFEFF1"},
		{name: "a NUL byte is an error", file: "A=1\n\nB=2\x00\n", err: ErrInvalidSyntax, line: 3},
		{name: "a NUL byte in a comment is an error", file: "# \x00\nA=1\n", err: ErrInvalidSyntax, line: 1},

		{name: "leading white space is ignored", file: " \t\v\fA=b\n", want: "A=b"},
		{name: "blank lines are ignored", file: "\n \n\t\nA=b\n\r\n\n", want: "A=b"},
		{name: "a line that starts with # is a comment", file: "#A=1\n  # B=2\nC=3\n", want: "C=3"},
		{name: "a comment may be longer than a value", file: "#" + long(40<<10) + "\nA=b\n", want: "A=b"},
		{name: "a file of nothing but comments defines nothing", file: "# A=1\n#", want: ""},
		{name: "a comment may end in a backslash", file: "# more \\\nA=b\n", want: "A=b"},
		{name: "there are no comments after a value", file: "A=b # c\n", want: "A=b # c"},
		{name: "# at the start of a value is literal", file: "A=#b\n", want: "A=#b"},

		{name: "white space around = is ignored", file: "A \t=\v\f b\n", want: "A=b"},
		{name: "white space at the end of a line is ignored", file: "A=b \t\v\f\n", want: "A=b"},
		{name: "white space at the end of the file is ignored", file: "A=b  ", want: "A=b"},
		{name: "quotes are literal, and the lines after them as any other", file: "A='b'\nB=c\n", want: "A='b';B=c"},
		{name: "white space after the last line is ignored", file: "A=b\n \t", want: "A=b"},
		{name: "white space in a value is literal", file: "A=b  \t c\n", want: "A=b  \t c"},
		{name: "only the first = divides", file: "A=b=c = d\n", want: "A=b=c = d"},
		{name: "a carriage return before the line feed is white space", file: "A=b\r\nB=c \r\n", want: "A=b;B=c"},
		{name: "of two carriage returns only the one before the line feed is", file: "A=b\r\r\n", want: "A=b\r"},
		{name: "a carriage return alone makes no line", file: "\rA=b\n", err: ErrInvalidName, line: 1},
		{name: "white space before a carriage return is at the line's end", file: "A=b \t\r\nB= \r\n", want: "A=b;B="},
		{name: "a carriage return elsewhere is literal", file: "A=b\rc\nB=d\r", want: "A=b\rc;B=d\r"},
		{name: "other white space of Unicode is literal", file: "A=\u00a0b\u2003\n", want: "A=\u00a0b\u2003"},

		{name: "quotes are literal", file: "A=\"b\"\nB='c'\n", want: "A=\"b\";B='c'"},
		{name: "a dollar is literal", file: "A=$B ${C} $(D)\n", want: "A=$B ${C} $(D)"},
		{name: "a backslash in a value is literal", file: "A=\\n\\tb\\\\c\n", want: "A=\\n\\tb\\\\c"},
		{name: "nothing after = is the empty string", file: "A=\nB= \n", want: "A=;B="},

		{name: "a backslash at the end joins the next line", file: "A=foo\\\nbar\n", want: "A=foo bar"},
		{name: "white space on both sides of a join is ignored", file: "A=foo  \\\n  bar\n", want: "A=foo bar"},
		{name: "white space after the backslash is at the line's end", file: "A=foo\\ \t\nbar\n", want: "A=foo bar"},
		{name: "a join over CRLF", file: "A=foo \\\r\nbar\r\n", want: "A=foo bar"},
		{name: "several joins", file: "A=foo\\\n bar\\\nbaz\nB=c\n", want: "A=foo bar baz;B=c"},
		{name: "a join right after =", file: "A=\\\n  b\n", want: "A=b"},
		{name: "a line of nothing but a backslash adds nothing to a join", file: "A=b\\\n\\\nc\n", want: "A=b c"},
		{name: "one of two backslashes is literal", file: "A=foo\\\\\nbar\n", want: "A=foo\\ bar"},
		{name: "= in a joined line is literal", file: "A=b\\\nB=c\n", want: "A=b B=c"},
		{name: "# inside a joined line is literal", file: "A=b\\\nc # d\n", want: "A=b c # d"},
		{name: "a join that meets a blank line is an error", file: "A=1\nB=b\\\n \nC=c\n", err: ErrInvalidSyntax, line: 3},
		{name: "a join that meets a blank line with CRLF is an error", file: "A=b\\\r\n\r\n", err: ErrInvalidSyntax, line: 2},
		{name: "an empty value that joins", file: "A=\\\n\\\nb\nB=\\\n\\\n\\\nc", want: "A=b;B=c"},
		{name: "a join to a line of declared form keeps its spaces inside", file: "A=b\\\n  c =  d\n", want: "A=b c =  d"},
		{name: "a join in a value that is not asked for", file: "X=1\\\n2\nA=3\n", want: "A=3"},
		{name: "a join that meets a comment is an error", file: "A=b\\\n # c\nd\n", err: ErrInvalidSyntax, line: 2},
		{name: "a join that meets the end of the file is an error", file: "A=b\\\nc\\\n", err: ErrInvalidSyntax, line: 2},
		{name: "a join in the last line without a line ending is an error", file: "A=b\\", err: ErrInvalidSyntax, line: 1},

		{name: "a line without = is an error", file: "A=1\nexport\n", err: ErrInvalidSyntax, line: 2},
		{name: "a line without a name is an error", file: "\n =b\n", err: ErrInvalidSyntax, line: 2},
		{name: "a backslash does not join before =", file: "A\\\n=b\n", err: ErrInvalidSyntax, line: 1},
		{name: "an error after all the keys is an error", file: "A=1\nB=2\nC=3\noops\n", err: ErrInvalidSyntax, line: 4},
		{name: "lines count on across joins", file: "A=b\\\nc\\\nd\noops\n", err: ErrInvalidSyntax, line: 4},

		{name: "the last definition wins", file: "A=1\nB=2\nA=3\n", want: "A=3;B=2"},
		{name: "the last definition wins, also if it is joined", file: "A=1\nB=2\nA=3\\\n4\n", want: "A=3 4;B=2"},
		{name: "keys in another order than the file's", file: "C=3\nB=2\nA=1\n", want: "A=1;B=2;C=3"},
		{name: "the last definition wins, also if it is empty", file: "A=1\nA=\n", want: "A="},
		{name: "the last definition wins over a joined one", file: "A=1\\\n2\nA=3\n", want: "A=3"},

		{name: "a name may have letters, digits, -, _ and .", file: "_a-B.9=1\nA=2\n", want: "A=2"},
		{name: "a name may not start with a digit", file: "A=1\n9A=2\n", err: ErrInvalidName, line: 2},
		{name: "a name may not be .", file: ".=1\n", err: ErrInvalidName, line: 1},
		{name: "a name may not start with ..", file: "..A=1\n", err: ErrInvalidName, line: 1},
		{name: "a name may not be the start of a step back", file: "..=1\n", err: ErrInvalidName, line: 1},
		{name: "a name may start with a dot, - or _", file: ".a=1\n-=2\n_=3\n", want: ""},
		{name: "a name that is wrong is an error after all the keys too", file: "A=1\nB=2\nC=3\n9=4\n", err: ErrInvalidName, line: 4},
		{name: "a name may not have other characters", file: "Ä=1\n", err: ErrInvalidName, line: 1},
		{name: "a name may not have a space", file: "export A=1\n", err: ErrInvalidName, line: 1},
		{name: "relaxed, a name may have every printable ASCII character but =", relaxed: true, file: "9 !\"#$%&'()*+,-./:;<>?@[\\]^`{|}~=1\nA=2\n", want: "A=2"},
		{name: "relaxed, white space around a name is ignored", relaxed: true, file: " a b  =1\n\tA\t=2\n", want: "A=2"},
		{name: "relaxed, a # first is a comment all the same", relaxed: true, file: "#=1\n #=2\nA=3\n", want: "A=3"},
		{name: "relaxed, a line without a name is an error", relaxed: true, file: " =1\n", err: ErrInvalidSyntax, line: 1},
		{name: "relaxed, a name may start with ..", relaxed: true, file: "..=1\nA=2\n", want: "A=2"},
		{name: "relaxed, a name may not have a control character", relaxed: true, file: "A\tB=1\n", err: ErrInvalidName, line: 1},
		{name: "relaxed, a name may not have other characters", relaxed: true, file: "Ä=1\n", err: ErrInvalidName, line: 1},

		{name: "a file of 64 KiB", file: fullFile[:MaxFileBytes-4] + "\nA=b", want: "A=b"},
		{name: "a file of 64 KiB and one byte is an error", file: fullFile[:MaxFileBytes-3] + "\nA=b", err: ErrLimitExceeded},
		{name: "a name of 128 bytes", file: long(128) + "=1\nA=2\n", want: "A=2"},
		{name: "a name of 129 bytes is an error", file: "A=1\n" + long(129) + "=1\n", err: ErrLimitExceeded, line: 2},
		{name: "a value of 32 KiB", file: "A=" + long(32<<10) + "\n", want: "A=" + long(32<<10)},
		{name: "white space around a value does not count", file: "A=  " + long(32<<10) + "  \n", want: "A=" + long(32<<10)},
		{name: "white space around a name does not count", file: "  " + long(128) + "  =1\nA=2\n", want: "A=2"},
		{name: "a name of 129 bytes is an error before it is an invalid one", file: long(128) + "!=1\n", err: ErrLimitExceeded, line: 1},
		{name: "a value of 32 KiB and one byte is an error", file: "X=1\nY=" + long(32<<10+1) + "\n", err: ErrLimitExceeded, line: 2},
		{name: "a value of 32 KiB with its joins", file: "A=" + long(16<<10) + "  \\\n  " + long(16<<10-1), want: "A=" + long(16<<10) + " " + long(16<<10-1)},
		{name: "a value of 32 KiB and one byte with its joins is an error", file: "A=" + long(16<<10) + "\\\n" + long(16<<10), err: ErrLimitExceeded, line: 1},
	})
}

// Each mistake has a message of its own.
func TestParseErrorMessages(t *testing.T) {
	for file, want := range map[string]string{
		"A=1\nexport\n":  "line 2: must be blank, a comment or VAR=VALUE, and has no =",
		"A=1\n = b\n":    "line 2: must have a name before the =",
		"A=b\\\n\nC=1\n": "line 2: must go on with the value, because the line before ends in a backslash: it must not be blank or a comment",
		"A=b\\\n# c\n":   "line 2: must go on with the value, because the line before ends in a backslash: it must not be blank or a comment",
		"A=b\\\nc\\\n":   "line 2: must not end in a backslash: no line follows",
		"A=b\\":          "line 1: must not end in a backslash: no line follows",
	} {
		if _, err := Parse([]byte(file), nil, Options{}); err == nil || err.Error() != want {
			t.Errorf("%q: want %q, got %v", file, want, err)
		}
	}
}

func wantError(t testing.TB, err error, kind *Error, line int) {
	t.Helper()
	var got *Error
	if !errors.As(err, &got) {
		t.Fatalf("want an error of reason %s, got: %v", kind.Reason, err)
	}
	if !errors.Is(err, kind) || got.Line != line {
		t.Errorf("want reason %s at line %d, got reason %s at line %d: %v", kind.Reason, line, got.Reason, got.Line, err)
	}
}

func TestParseSharesNoMemoryWithTheFile(t *testing.T) {
	data := []byte("A=before\n")
	values, err := Parse(data, []string{"A"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		data[i] = 'x'
	}
	if got, err := values.Lookup("A"); got != "before" || err != nil {
		t.Errorf("want %q, got %q, %v", "before", got, err)
	}
}

func TestParseTakesAKeyTwice(t *testing.T) {
	values, err := Parse([]byte("A=1\nB=2\n"), []string{"B", "A", "B"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"A": "1", "B": "2"} {
		if got, err := values.Lookup(key); got != want || err != nil {
			t.Errorf("%s: want %q, got %q, %v", key, want, got, err)
		}
	}
}

// An env file with many variables costs no more memory than one with few.
func TestParseAllocatesForTheKeysAskedForOnly(t *testing.T) {
	few := []byte("A=1\n")
	many := []byte(strings.Repeat("OTHER_NAME=and a value\n", 1000) + "A=1\n")
	allocations := func(data []byte) float64 {
		return testing.AllocsPerRun(100, func() {
			if _, err := Parse(data, []string{"A"}, Options{}); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := allocations(few), allocations(many); few != many {
		t.Errorf("%v allocations for 1 line, %v for 1001", few, many)
	}
}
