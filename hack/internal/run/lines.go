package run

import "bytes"

// EachLine calls line for each whole line at the start of output, without its ending,
// and returns what is left: the beginning of a line whose end is yet to be written.
func EachLine(output []byte, line func(string)) (rest []byte) {
	for {
		text, rest, whole := bytes.Cut(output, []byte{'\n'})
		if !whole {
			return output
		}
		line(string(text))
		output = rest
	}
}
