package audit

// strict reports whether the strict rule accepts name for a variable, as
// k8s.io/apimachinery's IsEnvVarName decides it: [-._a-zA-Z][-._a-zA-Z0-9]*, and
// neither "." nor a leading "..". An audit asks for every variable of a cluster,
// hence no regular expression.
func strict(name string) bool {
	if name == "" || isDigit(name[0]) {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !isDigit(c) && !isLetter(c) && c != '-' && c != '.' && c != '_' {
			return false
		}
	}
	return name[0] != '.' || len(name) > 1 && name[1] != '.'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
