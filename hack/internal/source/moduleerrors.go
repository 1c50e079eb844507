package source

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/mod/module"

	"podenv.dev/hack/internal/run"
)

// ErrChecksum is returned where a downloaded module is not the one that go.sum pins.
var ErrChecksum = errors.New("checksum mismatch")

// ErrDownload is returned where a module of the release cannot be had.
var ErrDownload = errors.New("cannot download")

// absent is how a proxy and a version control system say that a version does not exist.
var absent = regexp.MustCompile(`(?i)404|410|not found|no matching versions|unknown revision|file does not exist|no such file`)

func downloadError(m module.Version, reason string) error {
	next := "see that the Go module proxy can be reached (`go env GOPROXY`), or fill the module cache on a machine where it can"
	if absent.MatchString(reason) && !strings.Contains(reason, "no such host") {
		next = "there may be no such release: correct the versions in the series' go.mod"
	}
	return fmt.Errorf("%w %s: %s; %s", ErrDownload, m, strings.TrimSpace(reason), next)
}

// mismatch finds the module in go's report of a wrong checksum.
var mismatch = regexp.MustCompile(`verifying (\S+?)(?:/go\.mod)?: checksum mismatch`)

// explainDownload names the module that go found not to match go.sum.
func explainDownload(err error) error {
	var failed *run.Error
	if errors.As(err, &failed) {
		if m := mismatch.FindStringSubmatch(failed.Tail); m != nil {
			return checksumError(m[1], err)
		}
	}
	return fmt.Errorf("%w the release: %w", ErrDownload, err)
}

func checksumError(m string, detail error) error {
	return fmt.Errorf("%w: module %s is not the one that the series' go.sum pins: do not use it; delete it with `go clean -modcache` to download it again, and if that does not help find out who changed go.sum or the module: %w", ErrChecksum, m, detail)
}
