package envfile

import "bytes"

// lines goes through a file line by line.
type lines struct {
	data []byte
	// start and end are where the current line stands in data, without its
	// ending and without white space on either side.
	start, end int
	// number is that of the current line, counted from 1.
	number int

	// following is where the next line starts.
	following int
}

func (l *lines) text() []byte { return l.data[l.start:l.end] }

// next goes to the next line, if there is one.
func (l *lines) next() bool {
	if l.following >= len(l.data) {
		return false
	}
	l.number++
	start, end := l.following, len(l.data)
	l.following = end
	if length := bytes.IndexByte(l.data[start:], '\n'); length >= 0 {
		end = start + length
		l.following = end + 1
		if length > 0 && l.data[end-1] == '\r' {
			end--
		}
	}
	for start < end && class[l.data[start]]&space != 0 {
		start++
	}
	for start < end && class[l.data[end-1]]&space != 0 {
		end--
	}
	l.start, l.end = start, end
	return true
}

// join goes on from a line that ends in a backslash to the last line joined to
// it. The error has the line that cannot be joined, or the last one of the file.
func (l *lines) join() error {
	for {
		switch {
		case !l.next():
			return ErrInvalidSyntax.atLine(l.number, ruleJoinEnd)
		case l.start == l.end || l.data[l.start] == '#':
			return ErrInvalidSyntax.atLine(l.number, ruleJoin)
		}
		if l.data[l.end-1] != '\\' {
			return nil
		}
	}
}

var oneSpace = []byte{' '}

// eachPiece yields the pieces that the value of joined lines is made of.
func eachPiece(raw []byte, yield func(piece []byte)) {
	first := true
	for l := (lines{data: raw}); l.next(); {
		piece := l.text()
		if l.following < len(raw) {
			piece = trimRight(piece[:len(piece)-1])
		}
		// Nothing but a backslash adds nothing: the white space around a join
		// includes the space that the join before it left.
		if len(piece) == 0 {
			continue
		}
		if !first {
			yield(oneSpace)
		}
		yield(piece)
		first = false
	}
}

func joinedSize(raw []byte) int {
	size := 0
	eachPiece(raw, func(piece []byte) { size += len(piece) })
	return size
}

func trimRight(s []byte) []byte {
	for len(s) > 0 && class[s[len(s)-1]]&space != 0 {
		s = s[:len(s)-1]
	}
	return s
}
