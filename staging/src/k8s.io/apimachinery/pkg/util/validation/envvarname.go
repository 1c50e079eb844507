package validation

// envVarNameBytes says for each byte where in the name of an environment variable
// it may stand. It is a table because the API server looks into it for every byte
// of every name in every pod and pod template.
var envVarNameBytes = func() (table [256]uint8) {
	for c := range table {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c == '.', c == '_':
			table[c] = envVarStrictFirst | envVarStrictNext | envVarRelaxed
		case c >= '0' && c <= '9':
			table[c] = envVarStrictNext | envVarRelaxed
		case c >= ' ' && c <= '~' && c != '=':
			table[c] = envVarRelaxed
		}
	}
	return table
}()

const (
	envVarStrictFirst uint8 = 1 << iota // at the start, strict validation
	envVarStrictNext                    // after the start, strict validation
	envVarRelaxed                       // anywhere, relaxed validation
)

// matchesStrictEnvVarName reports whether the whole name matches
// [-._a-zA-Z][-._a-zA-Z0-9]*, strict validation of KEP-4369 without the refusal of
// ".", ".." and a leading "..", which is hasChDirPrefix's.
func matchesStrictEnvVarName(name string) bool {
	return len(name) > 0 && envVarNameBytes[name[0]]&envVarStrictFirst != 0 &&
		envVarNamePlaces(name)&envVarStrictNext != 0
}

// matchesRelaxedEnvVarName reports whether name matches ^[ -<>-~]+$, relaxed
// validation of KEP-4369: printable ASCII but "=", and at least one of it.
func matchesRelaxedEnvVarName(name string) bool {
	return len(name) > 0 && envVarNamePlaces(name)&envVarRelaxed != 0
}

// envVarNamePlaces returns where all the bytes of name may stand. It does not stop at
// one that may stand nowhere: nearly every name is right, and most are so short that
// a branch for each byte is what they cost.
func envVarNamePlaces(name string) uint8 {
	places := envVarStrictFirst | envVarStrictNext | envVarRelaxed
	for ; len(name) >= 4; name = name[4:] {
		places &= envVarNameBytes[name[0]] & envVarNameBytes[name[1]] & envVarNameBytes[name[2]] & envVarNameBytes[name[3]]
	}
	for i := 0; i < len(name); i++ {
		places &= envVarNameBytes[name[i]]
	}
	return places
}
