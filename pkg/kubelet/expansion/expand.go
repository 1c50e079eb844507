package expansion

import (
	"strings"
	"unicode/utf8"

	forked "k8s.io/kubernetes/third_party/forked/golang/expansion"
)

const (
	operator        = '$'
	referenceOpener = '('
	referenceCloser = ')'
)

// Expand replaces each reference $(NAME) in input by what mapping returns for
// NAME, and each $$ by one $; the two are told apart from the left. Everything
// else stays as it is, an unclosed reference included. What mapping returns is
// not expanded again.
//
// In the place of a result of more than MaxString bytes may be another, if it is longer than input.
//
// Document: Variable expansion, "Syntax".
func Expand(input string, mapping func(string) string) string {
	// Most inputs end here, before there is a stack frame to clear.
	first := strings.IndexByte(input, operator)
	if first < 0 {
		return input
	}
	return expandFrom(input, first, mapping)
}

// expandFrom is Expand for an input whose first operator is at first.
func expandFrom(input string, first int, mapping func(string) string) string {
	var (
		// Most results fit, and then the only allocation is the result.
		space    [128]byte
		expanded = space[:0]
		copied   = 0 // input[:copied] is dealt with in expanded
		unclosed = false
	)
	for at := first; at >= 0 && at+1 < len(input); at = indexOperator(input, at) {
		switch next := input[at+1]; {
		case next == operator:
			expanded = append(expanded, input[copied:at+1]...)
			at += 2
			copied = at
		case next == referenceOpener:
			name := at + 2
			closer := -1
			// Without this, a long row of openers would cost its square.
			if !unclosed {
				closer = strings.IndexByte(input[name:], referenceCloser)
			}
			if closer < 0 {
				unclosed = true
				at = name
				break
			}
			expanded = append(expanded, input[copied:at]...)
			value := mapping(input[name : name+closer])
			if len(expanded)+len(value) > max(MaxString, name+closer+1) {
				return tooLong
			}
			expanded = append(expanded, value...)
			at = name + closer + 1
			copied = at
		case next >= utf8.RuneSelf:
			// Here the releases differ: up to v1.33 "$£" begins with "$Â", later it
			// stays. Pods exist that were started either way, so the release decides.
			_, size := utf8.DecodeRuneInString(input[at+1:])
			behind := at + 1 + size
			expanded = append(expanded, input[copied:at]...)
			expanded = append(expanded, forked.Expand(input[at:behind], nil)...)
			at, copied = behind, behind
		default:
			at += 2
		}
	}
	if copied == 0 {
		return input
	}
	return string(append(expanded, input[copied:]...))
}

// indexOperator returns the index of the first operator in input from index from on,
// or -1.
func indexOperator(input string, from int) int {
	if i := strings.IndexByte(input[from:], operator); i >= 0 {
		return from + i
	}
	return -1
}
