package envfile

import "unicode/utf8"

// MaxShownBytes is how much a message shows of a path, or of a name without a
// limit of its own.
const MaxShownBytes = 256

// Short returns text for a message: at most MaxShownBytes of its start,
// with "..." in place of the rest. It does not cut a UTF-8 sequence.
func Short(text string) string {
	if len(text) <= MaxShownBytes {
		return text
	}
	const rest = "..."
	end := MaxShownBytes - len(rest)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + rest
}
