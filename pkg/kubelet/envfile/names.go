package envfile

import "strings"

// class says for each byte what it can be. It is a table because it is looked
// into for every byte of every name.
var class = func() (table [256]byte) {
	for c := range table {
		if strings.IndexByte(" \t\v\f", byte(c)) >= 0 {
			table[c] |= space
		}
		if isDigit(byte(c)) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("-._", byte(c)) >= 0 {
			table[c] |= strictName
		}
		if c >= ' ' && c <= '~' && c != '=' {
			table[c] |= relaxedName
		}
	}
	return table
}()

const (
	space = 1 << iota
	strictName
	relaxedName
)

// nameBytes returns how many bytes at the start of s may be in a name.
func nameBytes(s []byte, relaxed bool) int {
	kind := byte(strictName)
	if relaxed {
		kind = relaxedName
	}
	n := 0
	for n < len(s) && class[s[n]]&kind != 0 {
		n++
	}
	return n
}

// validName reports whether the API server would accept name, of bytes that may
// be in one, as the name of a container's variable: k8s.io/apimachinery's
// IsEnvVarName, or IsRelaxedEnvVarName, without a regular expression per line.
func validName(name []byte, relaxed bool) bool {
	if len(name) == 0 {
		return false
	}
	if relaxed {
		return true
	}
	if name[0] != '.' {
		return !isDigit(name[0])
	}
	// Today's refusals: a name that could pass for a step out of a directory.
	return len(name) > 1 && name[1] != '.'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
