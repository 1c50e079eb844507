package envfile

import "bytes"

const (
	ruleQuotedForm     = ": v1.35 and later read env files of the form VAR='value'"
	ruleQuotedNoEquals = "must be blank, a comment or VAR='value', and has no ="
	ruleQuotedSpace    = "must have no white space before the =" + ruleQuotedForm
	ruleUnquoted       = "must have its value in single quotes, right after the =" + ruleQuotedForm
	ruleUnclosed       = "must have a single quote that ends the value: the file has none"
	ruleAfterQuote     = "must have nothing but white space and a comment after the single quote that ends the value: a value cannot contain a single quote"
)

// quoted goes through a file in the form SingleQuoted, declaration by declaration.
type quoted struct {
	data []byte
	// at is where the next byte is read, and line the number of its line, from 1.
	at, line int
}

// next goes to the next declaration, past white space, blank lines and comments. It
// returns false at the end of the file.
func (q *quoted) next() bool {
	for q.at < len(q.data) {
		switch c := q.data[q.at]; {
		case isBlank(c):
			q.at++
		case c == '#' || q.isLineEnd():
			q.skipLine()
		default:
			return true
		}
	}
	return false
}

// declaration reads VAR='value' and the rest of the line on which the value ends.
func (q *quoted) declaration(relaxed bool) (name []byte, value place, err error) {
	start, number := q.at, q.line
	rest := q.data[start:]
	valid := nameBytes(rest, relaxed)
	equals := valid
	if equals == len(rest) || rest[equals] != '=' {
		line, _, _ := bytes.Cut(rest, []byte{'\n'})
		equals = bytes.IndexByte(line, '=')
	}
	switch {
	case equals < 0:
		return nil, undefined, ErrInvalidSyntax.atLine(number, ruleQuotedNoEquals)
	case equals == 0:
		return nil, undefined, ErrInvalidSyntax.atLine(number, ruleNoName)
	case isBlank(rest[equals-1]):
		return nil, undefined, ErrInvalidSyntax.atLine(number, ruleQuotedSpace)
	case equals > MaxNameBytes:
		return nil, undefined, ErrLimitExceeded.atLine(number, ruleNameBytes)
	case equals > valid || !validName(rest[:equals], relaxed):
		return nil, undefined, ErrInvalidName.atLine(number, "")
	}
	name, q.at = rest[:equals], start+equals+1
	if q.at < len(q.data) && isBlank(q.data[q.at]) {
		// As in a shell, the value ends here. What follows it does not count.
		value = placeOf(q.at, q.at)
		q.skipLine()
		return name, value, nil
	}
	value, err = q.value()
	return name, value, err
}

// value reads a value in single quotes, which may go over several lines.
func (q *quoted) value() (value place, err error) {
	number := q.line
	if q.at == len(q.data) || q.data[q.at] != '\'' {
		return undefined, ErrInvalidSyntax.atLine(number, ruleUnquoted)
	}
	start := q.at + 1
	length := bytes.IndexByte(q.data[start:], '\'')
	if length < 0 {
		return undefined, ErrInvalidSyntax.atLine(number, ruleUnclosed)
	}
	q.at = start + length + 1
	raw := q.data[start : start+length]
	value = placeOf(start, start+length)
	if lines := bytes.Count(raw, lineFeed); lines > 0 {
		q.line += lines
		if returns := bytes.Count(raw, lineEnding); returns > 0 {
			value |= joined
			length -= returns
		}
	}
	if length > MaxValueBytes {
		return undefined, ErrLimitExceeded.atLine(number, ruleValueBytes)
	}
	for q.at < len(q.data) && isBlank(q.data[q.at]) {
		q.at++
	}
	if q.at < len(q.data) && q.data[q.at] != '#' && !q.isLineEnd() {
		return undefined, ErrInvalidSyntax.atLine(q.line, ruleAfterQuote)
	}
	q.skipLine()
	return value, nil
}

// isLineEnd reports whether the line, or the file, ends here, before or after a carriage
// return.
func (q *quoted) isLineEnd() bool {
	rest := q.data[q.at:]
	return rest[0] == '\n' || rest[0] == '\r' && (len(rest) == 1 || rest[1] == '\n')
}

func (q *quoted) skipLine() {
	length := bytes.IndexByte(q.data[q.at:], '\n')
	if length < 0 {
		q.at = len(q.data)
		return
	}
	q.at += length + 1
	q.line++
}

// isBlank reports whether c is white space in the form SingleQuoted.
func isBlank(c byte) bool { return c == ' ' || c == '\t' }

var lineFeed, lineEnding = []byte("\n"), []byte("\r\n")

// eachQuotedPiece yields the pieces of a value in which lines end in \r\n: the carriage
// returns are not part of the value.
func eachQuotedPiece(raw []byte, yield func(piece []byte)) {
	for len(raw) > 0 {
		end := bytes.Index(raw, lineEnding)
		if end < 0 {
			yield(raw)
			return
		}
		yield(raw[:end])
		yield(lineFeed)
		raw = raw[end+len(lineEnding):]
	}
}
