package envfile

import "bytes"

// The limits of an env file, all in bytes. Going over one is an error.
const (
	MaxFileBytes  = 64 << 10
	MaxNameBytes  = 128
	MaxValueBytes = 32 << 10
)

// Syntax is the form of env files that a Kubernetes minor reads.
type Syntax int

const (
	// DotEnv is "RFC 2 -- .env file": VAR=VALUE, all in VALUE is literal. v1.34 and
	// older minors read it.
	DotEnv Syntax = iota
	// SingleQuoted is VAR='value'. v1.35 and later minors read it.
	SingleQuoted
)

// Options are the rules that a kubelet can change.
type Options struct {
	// Syntax is the form of the file.
	Syntax Syntax
	// RelaxedNames allows every printable ASCII character but = in a name, as
	// the gate RelaxedEnvironmentVariableValidation does for API-defined names.
	RelaxedNames bool
	// Reader are the credentials that must be allowed to read the file, as the
	// kernel would decide it, and to search every directory from the volume's
	// root to it. If they are nil, whoever may read it; UID 0 passes. Parse does
	// not look at them.
	Reader *Credentials
}

const (
	ruleNoEquals   = "must be blank, a comment or VAR=VALUE, and has no ="
	ruleDotEnvForm = ": v1.34 and older minors take quotes literally, and a value ends with its line"
	ruleNoName     = "must have a name before the ="
	ruleJoin       = "must go on with the value, because the line before ends in a backslash: it must not be blank or a comment"
	ruleJoinEnd    = "must not end in a backslash: no line follows"
	ruleByteOrder  = "must not start with a byte order mark"
	ruleUTF8       = "must be valid UTF-8"
	ruleNUL        = "must not contain a NUL byte"
	ruleFileBytes  = "the file must not be larger than 64 KiB"
	ruleNameBytes  = "the name before = must not be longer than 128 bytes"
	ruleValueBytes = "the value must not be longer than 32 KiB"
)

// Parse returns the values that the env file data defines for keys. The whole
// file is checked, whatever the keys are. In both forms data is UTF-8 without byte
// order mark and NUL bytes, and the last definition of a name wins.
//
// DotEnv:
//
//   - white space (space, tab, vertical tab, form feed; \r only right before
//     \n) at a line's start and end and around the first = does not count;
//   - blank lines and lines that start with # do not count; there are no
//     comments after a value;
//   - every other line is VAR=VALUE, VALUE may be empty, and all in it is
//     literal: quotes, $ and #;
//   - a backslash at the end of a VAR=VALUE joins the next line: line end,
//     backslash and the white space on both sides become one space.
//
// SingleQuoted:
//
//   - white space (space, tab) at the start of a line does not count, \r before \n or
//     at the end of the file does not either, in a value too;
//   - blank lines and lines that start with # do not count;
//   - every other line starts with VAR='value', with no white space before the =. The
//     value ends at the next single quote, maybe on a later line, and all in it is
//     literal. White space and a comment that starts with # may follow;
//   - VAR= with white space after it is the empty value, whatever follows on the line.
//
// The error is an *Error with the line at fault. It allocates for keys only, not for
// what else the file defines, and the values share no memory with data. They
// keep keys, which must not be changed any more.
func Parse(data []byte, keys []string, opts Options) (*Values, error) {
	if err := checkText(data); err != nil {
		return nil, err
	}
	found := newSelection(data, keys)
	if opts.Syntax == SingleQuoted {
		for q := (quoted{data: data, line: 1}); q.next(); {
			name, at, err := q.declaration(opts.RelaxedNames)
			if err != nil {
				return nil, err
			}
			found.set(name, at)
		}
		return found.values(eachQuotedPiece), nil
	}
	for l := (lines{data: data}); l.next(); {
		if l.start == l.end || data[l.start] == '#' {
			continue
		}
		name, at, err := l.declaration(opts.RelaxedNames)
		if err != nil {
			return nil, err
		}
		found.set(name, at)
	}
	return found.values(eachPiece), nil
}

// openQuote starts a value in the form SingleQuoted.
var openQuote = []byte("='")

// declaration reads VAR=VALUE from the current line, and from those joined to it.
func (l *lines) declaration(relaxed bool) (name []byte, at place, err error) {
	line, number := l.text(), l.number
	valid := nameBytes(line, relaxed)
	equals := valid
	if equals == len(line) || line[equals] != '=' {
		equals = bytes.IndexByte(line, '=')
	}
	switch {
	case equals < 0 && bytes.Contains(l.data[:l.start], openQuote):
		return nil, undefined, ErrInvalidSyntax.atLine(number, ruleNoEquals+ruleDotEnvForm)
	case equals < 0:
		return nil, undefined, ErrInvalidSyntax.atLine(number, ruleNoEquals)
	case equals == 0:
		return nil, undefined, ErrInvalidSyntax.atLine(number, ruleNoName)
	}
	name = trimRight(line[:equals])
	if len(name) > MaxNameBytes {
		return nil, undefined, ErrLimitExceeded.atLine(number, ruleNameBytes)
	}
	if len(name) > valid || !validName(name, relaxed) {
		return nil, undefined, ErrInvalidName.atLine(number, "")
	}
	start := l.start + equals + 1
	for start < l.end && class[l.data[start]]&space != 0 {
		start++
	}
	if line[len(line)-1] == '\\' {
		if err := l.join(); err != nil {
			return nil, undefined, err
		}
		at = joined
	}
	at |= placeOf(start, l.end)
	if at.len() > MaxValueBytes && joinedSize(l.data[start:l.end]) > MaxValueBytes {
		return nil, undefined, ErrLimitExceeded.atLine(number, ruleValueBytes)
	}
	return name, at, nil
}
