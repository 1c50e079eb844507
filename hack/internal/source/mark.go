package source

import (
	"fmt"
	"strings"
)

// kind says what a commit of a tree is. All but a patch carry it in their message, where
// it survives a rebase.
type kind string

const (
	kindRelease   kind = "release"
	kindNewFiles  kind = "new-files"
	kindPatch     kind = "patch"
	kindGenerated kind = "generated"
)

// markTrailer is the line of a message that names the commit's kind.
const markTrailer = "Podenv-Commit: "

// message is the text of a commit that is not a patch.
func message(k kind, subject, body string) string {
	return fmt.Sprintf("%s\n\n%s\n\n%s%s\n", subject, body, markTrailer, k)
}

// kindOf reads a commit's kind from its message.
func kindOf(message string) kind {
	for line := range strings.Lines(message) {
		if k, ok := strings.CutPrefix(strings.TrimSpace(line), markTrailer); ok {
			return kind(k)
		}
	}
	return kindPatch
}
