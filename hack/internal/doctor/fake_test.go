package doctor

import (
	"path/filepath"
	"strings"
	"testing"

	"podenv.dev/hack/internal/testutil"
)

// files writes files of a machine that is not this one, by path, and returns the
// folder that they are in.
func files(t testing.TB, content map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		testutil.WriteFile(t, filepath.Join(dir, name), text)
	}
	return dir
}

// commands makes scripts all of PATH.
func commands(t testing.TB, scripts map[string]string) {
	t.Helper()
	content := map[string]string{}
	for name, body := range scripts {
		content[name] = "#!/bin/sh\n" + body + "\n"
	}
	t.(*testing.T).Setenv("PATH", files(t, content))
}

// want fails unless the finding has the status, and says found, and its remedy, if
// it needs one, says remedy.
func (f Finding) want(t testing.TB, status, found, remedy string) {
	t.Helper()
	if f.Status != status || !strings.Contains(f.Found, found) || !strings.Contains(f.Remedy, remedy) {
		t.Errorf("%+v, want status %s, found %q, remedy %q", f, status, found, remedy)
	}
	if (f.Remedy == "") != (f.Status == OK) {
		t.Errorf("%+v: every finding has a remedy but one that is ok", f)
	}
}
