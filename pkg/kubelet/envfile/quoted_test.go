package envfile

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseSingleQuoted(t *testing.T) {
	long := func(n int) string { return strings.Repeat("v", n) }
	// lines is a text of n bytes in lines of that length, with ending.
	lines := func(n, length int, ending string) string {
		return strings.Repeat(long(length-len(ending))+ending, n/length)
	}
	testParse(t, SingleQuoted, []parseCase{
		{name: "an empty file defines nothing", file: "", want: ""},
		{name: "a declaration", file: "A='b'\n", want: "A=b"},
		{name: "the last line needs no line ending", file: "A='b'", want: "A=b"},
		{name: "several declarations", file: "A='1'\nB='2'\nC='3'\n", want: "A=1;B=2;C=3"},
		{name: "names that were not asked for", file: "X='1'\nA='2'\nAA='3'\na='4'\n", want: "A=2"},
		{name: "the last definition wins", file: "A='1'\nB='2'\nA='3'\n", want: "A=3;B=2"},
		{name: "the last definition wins, also if it is empty", file: "A='1'\nA=''\n", want: "A="},
		{name: "an empty value is a value", file: "A=''\n", want: "A="},

		{name: "text may be UTF-8", file: "A='grüße 你好'\n", want: "A=grüße 你好"},
		{name: "invalid UTF-8 is an error", file: "A='1'\n#\nB='\xff'\n", err: ErrInvalidSyntax, line: 3},
		{name: "a byte order mark is an error", file: "\uFEFFA='1'\n", err: ErrInvalidSyntax, line: 1},
		{name: "a NUL byte is an error", file: "A='1\n2\x00'\n", err: ErrInvalidSyntax, line: 2},

		{name: "white space at the start of a line is ignored", file: " \tA='b'\n\t B='c'\n", want: "A=b;B=c"},
		{name: "blank lines and comments are ignored", file: "\n \t\n# A='1'\n\t# A='2'\nB='c'\n", want: "B=c"},
		{name: "a comment may contain a quote", file: "# it's\nA='b'\n", want: "A=b"},
		{name: "a comment may end the file", file: "A='b'\n#", want: "A=b"},
		{name: "a comment may follow a value", file: "A='b' # c\nB='c'#d\nC='d'\t#'\n", want: "A=b;B=c;C=d"},
		{name: "white space may follow a value", file: "A='b' \t\nB='c' ", want: "A=b;B=c"},

		{name: "white space before = is an error", file: "A='1'\nB ='c'\n", err: ErrInvalidSyntax, line: 2},
		{name: "a tab before = is an error", file: "A\t='1'\n", err: ErrInvalidSyntax, line: 1},
		{name: "white space after = is the empty value", file: "A= 'b'\nB=\tc\nC= \n", want: "A=;B=;C="},
		{name: "white space after = ends the value, also at the end of the file", file: "A='1'\nA= ", want: "A="},
		{name: "a quote after white space after = starts nothing", file: "A= 'b\nB='c'\n", want: "A=;B=c"},

		{name: "everything between the quotes is literal", file: `A=' $B ${C} \n "x" # y = ' ` + "\n", want: `A= $B ${C} \n "x" # y = `},
		{name: "a backslash at the end of a line is literal", file: "A='b\\\nc'\n", want: "A=b\\\nc"},
		{name: "a value may go over several lines", file: "A='b\n  c\n\nd '\nB='e'\n", want: "A=b\n  c\n\nd ;B=e"},
		{name: "a value may look like declarations and comments", file: "A='b\nB=c\n# d'\n", want: "A=b\nB=c\n# d"},
		{name: "a value may start and end with a line ending", file: "A='\nb\n'\n", want: "A=\nb\n"},
		{name: "a carriage return before a line feed counts nowhere", file: "A='b'\r\n\r\nB='c\r\nd\r\n' # e\r\n# f\r\nC='g'\r\n", want: "A=b;B=c\nd\n;C=g"},
		{name: "a carriage return at the end of the file does not count", file: "A='b'\r", want: "A=b"},
		{name: "of two carriage returns only the one before the line feed does not count", file: "A='b\r\r\nc'\n", want: "A=b\r\nc"},
		{name: "a carriage return elsewhere in a value is literal", file: "A='b\rc\r'\n", want: "A=b\rc\r"},
		{name: "a carriage return elsewhere outside of a value is an error", file: "A='b'\r\r\n", err: ErrInvalidSyntax, line: 1},
		{name: "a carriage return between values of several lines", file: "X='b\r\nc'\r\nA='d'\r\n", want: "A=d"},

		{name: "a value without quotes is an error", file: "A='1'\nB=c\n", err: ErrInvalidSyntax, line: 2},
		{name: "a value in double quotes is an error", file: "A=\"b\"\n", err: ErrInvalidSyntax, line: 1},
		{name: "nothing after = is an error", file: "A=\nB='c'\n", err: ErrInvalidSyntax, line: 1},
		{name: "nothing after = at the end of the file is an error", file: "A='1'\nB=", err: ErrInvalidSyntax, line: 2},
		{name: "text after the closing quote is an error", file: "A='b'c\n", err: ErrInvalidSyntax, line: 1},
		{name: "a second quoted text is an error", file: "A='b''c'\n", err: ErrInvalidSyntax, line: 1},
		{name: "a backslash does not escape a quote", file: "A='it\\'s'\n", err: ErrInvalidSyntax, line: 1},
		{name: "an open quote takes the next line's quote for its own", file: "A='b\nB='c'\n", err: ErrInvalidSyntax, line: 2},
		{name: "an open quote is an error at the line where it stands", file: "A='1'\nB='c\nd\n", err: ErrInvalidSyntax, line: 2},
		{name: "a quote alone at the end of the file is an error", file: "A='", err: ErrInvalidSyntax, line: 1},
		{name: "a line without = is an error", file: "A='1'\nexport\n", err: ErrInvalidSyntax, line: 2},
		{name: "a line without = does not take that of the next", file: "A\n='1'\n", err: ErrInvalidSyntax, line: 1},
		{name: "a line without a name is an error", file: "\n ='b'\n", err: ErrInvalidSyntax, line: 2},
		{name: "an error after all the keys is an error", file: "A='1'\nB='2'\nC='3'\noops\n", err: ErrInvalidSyntax, line: 4},
		{name: "lines count on across values", file: "A='b\nc\r\nd'\noops\n", err: ErrInvalidSyntax, line: 4},
		{name: "lines count on across empty values and comments", file: "A= \n# b\n\noops\n", err: ErrInvalidSyntax, line: 4},

		{name: "a name may have every printable ASCII character but =", relaxed: true, file: "9 !\"$%&'()*+,-./:;<>?@[\\]^`{|}~='1'\nA='2'\n", want: "A=2"},
		{name: "strict, it may not", file: "A='1'\n9='2'\n", err: ErrInvalidName, line: 2},
		{name: "a name may not have other characters", file: "Ä='1'\n", err: ErrInvalidName, line: 1},
		{name: "a name may not have a control character", file: "A\tB='1'\n", err: ErrInvalidName, line: 1},

		{name: "a name of 128 bytes", file: long(128) + "='1'\nA='2'\n", want: "A=2"},
		{name: "a name of 129 bytes is an error", file: "A='1'\n" + long(129) + "='1'\n", err: ErrLimitExceeded, line: 2},
		{name: "a value of 32 KiB", file: "A='" + long(32<<10) + "'\n", want: "A=" + long(32<<10)},
		{name: "a value of 32 KiB and one byte is an error", file: "X='1'\nY='" + long(32<<10+1) + "'\n", err: ErrLimitExceeded, line: 2},
		{name: "a value of 32 KiB in lines", file: "A='" + lines(32<<10, 64, "\n") + "'\n", want: "A=" + lines(32<<10, 64, "\n")},
		{name: "carriage returns do not count", file: "A='" + strings.ReplaceAll(lines(32<<10, 64, "\n"), "\n", "\r\n") + "'\n", want: "A=" + lines(32<<10, 64, "\n")},
		{name: "a value in lines of 32 KiB and one byte is an error at its first", file: "#\nA='" + lines(32<<10, 64, "\n") + "v'\n", err: ErrLimitExceeded, line: 2},
		{name: "a file of 64 KiB and one byte is an error", file: "A='1'\n#" + long(64<<10-6), err: ErrLimitExceeded},
	})
}

// A message says which form is read where a file may have the other one.
func TestParseErrorMessagesNameTheForm(t *testing.T) {
	for _, tc := range []struct {
		file   string
		syntax Syntax
		want   string
	}{
		{"A=b\n", SingleQuoted, "line 1: must have its value in single quotes, right after the =: v1.35 and later read env files of the form VAR='value'"},
		{"A = b\n", SingleQuoted, "line 1: must have no white space before the =: v1.35 and later read env files of the form VAR='value'"},
		{"export\n", SingleQuoted, "line 1: must be blank, a comment or VAR='value', and has no ="},
		{"A='b\n", SingleQuoted, "line 1: must have a single quote that ends the value: the file has none"},
		{"A='it's'\n", SingleQuoted, "line 1: must have nothing but white space and a comment after the single quote that ends the value: a value cannot contain a single quote"},
		{"A='b\nc'\n", DotEnv, "line 2: must be blank, a comment or VAR=VALUE, and has no =: v1.34 and older minors take quotes literally, and a value ends with its line"},
		{"A=b\nc'\n", DotEnv, "line 2: must be blank, a comment or VAR=VALUE, and has no ="},
	} {
		if _, err := Parse([]byte(tc.file), nil, Options{Syntax: tc.syntax}); err == nil || err.Error() != tc.want {
			t.Errorf("%q: want %q, got %v", tc.file, tc.want, err)
		}
	}
}

// naiveParseQuoted reads the form SingleQuoted line by line, with no thought for speed. It
// shares no code with Parse but the limits.
func naiveParseQuoted(file string, relaxed bool) (map[string]string, *Error) {
	const blanks = " \t"
	if err := naiveText(file); err != nil {
		return nil, err
	}
	lines := strings.Split(file, "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	syntaxError := func(i int) *Error { return &Error{Reason: ReasonInvalidSyntax, Line: i + 1} }
	defined := map[string]string{}
	for i := 0; i < len(lines); i++ {
		line := strings.TrimLeft(lines[i], blanks)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		first := i
		name, rest, found := strings.Cut(line, "=")
		switch {
		case !found || name == "" || strings.TrimRight(name, blanks) != name:
			return nil, syntaxError(i)
		case len(name) > MaxNameBytes:
			return nil, &Error{Reason: ReasonLimitExceeded, Line: i + 1}
		case !naiveName(relaxed).MatchString(name):
			return nil, &Error{Reason: ReasonInvalidName, Line: i + 1}
		}
		if rest != strings.TrimLeft(rest, blanks) {
			defined[name] = ""
			continue
		}
		rest, found = strings.CutPrefix(rest, "'")
		if !found {
			return nil, syntaxError(i)
		}
		for !strings.Contains(rest, "'") {
			i++
			// After the last line ending there is no line.
			if i == len(lines) || i == len(lines)-1 && lines[i] == "" {
				return nil, syntaxError(first)
			}
			rest += "\n" + lines[i]
		}
		value, after, _ := strings.Cut(rest, "'")
		if len(value) > MaxValueBytes {
			return nil, &Error{Reason: ReasonLimitExceeded, Line: first + 1}
		}
		if after = strings.TrimLeft(after, blanks); after != "" && !strings.HasPrefix(after, "#") {
			return nil, syntaxError(i)
		}
		defined[name] = value
	}
	return defined, nil
}

func FuzzParseQuoted(f *testing.F) {
	for _, file := range []string{
		"", "A='b'", "A='b' # c\r\n# comment\nB=''\n", "A='foo \n  bar'\n", "A='b", "A='b''c'", "A= 'b'\nB=\t", "A =''", "A=b", "A=", "A='", "A\n='b'", "9='1'", ". ='1'",
		"A='1'\nA='2'\n", "\uFEFFA='1'", "A='\x00'", "A='\xff'", "A='b'\r\r\n", "A='b\r\n\r\nc'\r", "A='b\r'", "\r", " \r\n\t#", strings.Repeat("n", 129) + "=''", strings.Repeat("n", 128) + "=''",
		"B='2' \nA='1\n'\nC=''\n", "A=' $B\\'#", "A='b'\v", "A='1\n2'\n\n\noops",
	} {
		f.Add(file, false)
		f.Add(file, true)
	}
	f.Fuzz(func(t *testing.T, file string, relaxed bool) {
		agrees(t, file, Options{Syntax: SingleQuoted, RelaxedNames: relaxed}, naiveParseQuoted)
	})
}

func TestParseQuotedAgreesWithNaiveParseAtTheLimits(t *testing.T) {
	long := func(n int) string { return strings.Repeat("v", n) }
	for _, more := range []int{-1, 0, 1} {
		for _, file := range []string{
			long(MaxNameBytes+more) + "='1'\n",
			"A='" + long(MaxValueBytes+more) + "'\n",
			"A='\r\n" + long(MaxValueBytes-2+more) + "\r\n' x\n",
			"A='\r\n" + long(MaxValueBytes-2+more) + "\r\n'\r\n",
			"A='1'\n#" + long(MaxFileBytes-7+more),
			"A='1'\n" + strings.Repeat("\n", MaxFileBytes-6+more),
			"A='" + long(MaxValueBytes) + "'\nB='" + long(MaxFileBytes-MaxValueBytes-9+more) + "'",
		} {
			for _, relaxed := range []bool{false, true} {
				agrees(t, file, Options{Syntax: SingleQuoted, RelaxedNames: relaxed}, naiveParseQuoted)
			}
		}
	}
}

func BenchmarkParseQuoted(b *testing.B) {
	for _, lines := range []int{2, 100, 1000} {
		var file strings.Builder
		for i := 0; i < lines; i++ {
			line := fmt.Sprintf("KEY%d='", i)
			fmt.Fprintf(&file, "%s%s'\n", line, strings.Repeat("v", MaxFileBytes/lines-len(line)-2))
		}
		data, keys := []byte(file.String()), keysOf(lines)
		b.Run(fmt.Sprintf("%d_lines", lines), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for i := 0; i < b.N; i++ {
				if _, err := Parse(data, keys, Options{Syntax: SingleQuoted}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
