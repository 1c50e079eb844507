package doctor

import (
	"testing"

	"podenv.dev/hack/internal/layout"
)

func TestTools(t *testing.T) {
	git := required[0]
	protoc := required[2]
	for name, test := range map[string]struct {
		tool                  tool
		commands              map[string]string
		install               bool
		status, found, remedy string
	}{
		"new enough":                      {git, map[string]string{"git": "echo git version 2.39.5"}, true, OK, "git version 2.39.5", ""},
		"of the very minimum":             {git, map[string]string{"git": "echo git version 2.30.0"}, true, OK, "2.30.0", ""},
		"with a vendor's suffix":          {git, map[string]string{"git": "echo 'git version 2.50.1 (Apple Git-155)'"}, true, OK, "2.50.1", ""},
		"too old, though its digits sort": {git, map[string]string{"git": "echo git version 2.4.11"}, true, Fail, "older than 2.30.0", "apt-get install git"},
		"with no version in its answer":   {git, map[string]string{"git": "echo hello"}, true, Fail, "hello, older than", "apt-get install git"},
		"that fails":                      {git, map[string]string{"git": "echo broken >&2; exit 1"}, true, Fail, "broken", "apt-get install git"},
		"missing, which podenv installs":  {protoc, nil, true, Warn, "not installed", "`podenv up` installs it"},
		"missing, which podenv may not":   {protoc, nil, false, Fail, "not installed", "apt-get install protobuf-compiler"},
		"missing, which came before us":   {git, nil, true, Fail, "not installed", "apt-get install git"},
		"with a version of two numbers":   {protoc, map[string]string{"protoc": "echo libprotoc 29.3"}, true, OK, "29.3", ""},
	} {
		t.Run(name, func(t *testing.T) {
			commands(t, test.commands)
			test.tool.examine(t.Context(), test.install).want(t, test.status, test.found, test.remedy)
		})
	}
}

func TestGo(t *testing.T) {
	for name, test := range map[string]struct {
		mod, prints           string
		status, found, remedy string
	}{
		"of the same version":        {"module m\n\ngo 1.26.0\n", "echo go1.26.0", OK, "go1.26.0", ""},
		"newer":                      {"module m\n\ngo 1.26.0\n", "echo go1.30", OK, "go1.30", ""},
		"newer, with experiments":    {"module m\n\ngo 1.26.0\n", "echo go1.26.8 X:boringcrypto", OK, "go1.26.8", ""},
		"older":                      {"module m\n\ngo 1.26.0\n", "echo go1.9.7", Fail, "go1.9.7, older than go.mod's 1.26.0", "install Go 1.26.0"},
		"that would download itself": {"module m\n\ngo 1.26.0\n", "test $GOTOOLCHAIN = local && echo go1.26.1", OK, "go1.26.1", ""},
		"that does not run":          {"module m\n\ngo 1.26.0\n", "exit 1", Fail, "exit status 1", "install Go 1.26.0"},
		"for a go.mod without go":    {"module m\n", "echo go1.26.0", Fail, "names no version", "git checkout"},
		"outside of a checkout":      {"", "", Fail, "no such file", "checkout"},
	} {
		t.Run(name, func(t *testing.T) {
			commands(t, map[string]string{"go": test.prints})
			l := layout.Layout{Root: t.TempDir()}
			if test.mod != "" {
				l.Root = files(t, map[string]string{"go.mod": test.mod})
			}
			golang(t.Context(), l).want(t, test.status, test.found, test.remedy)
		})
	}
}

func TestRuncTools(t *testing.T) {
	const gcc = `test "$1" = -dumpfullversion && echo 12.2.0`
	for name, test := range map[string]struct {
		commands      map[string]string
		install       bool
		status, found string
	}{
		"both":                          {map[string]string{"gcc": gcc, "pkg-config": `test "$*" = "--modversion libseccomp" && echo 2.5.4`}, false, OK, "gcc 12.2.0, libseccomp 2.5.4"},
		"no compiler":                   {map[string]string{"pkg-config": "echo 2.5.4"}, true, Warn, "runc needs them"},
		"no libseccomp":                 {map[string]string{"gcc": gcc, "pkg-config": "exit 1"}, true, Warn, "runc needs them"},
		"nothing":                       {nil, true, Warn, "runc needs them"},
		"nothing, and nobody may":       {nil, false, Fail, "runc needs them"},
		"no libseccomp, and nobody may": {map[string]string{"gcc": gcc, "pkg-config": "exit 1"}, false, Fail, "runc needs them"},
	} {
		t.Run(name, func(t *testing.T) {
			commands(t, test.commands)
			remedy := "apt-get install gcc libc6-dev libseccomp-dev pkg-config"
			if test.status == OK {
				remedy = ""
			}
			runcTools(t.Context(), test.install).want(t, test.status, test.found, remedy)
		})
	}
}

func TestPackageInstallation(t *testing.T) {
	commands(t, nil)
	packages(t.Context()).want(t, Warn, "not Debian", "by hand")
	commands(t, map[string]string{"apt-get": "", "sudo": ""})
	packages(t.Context()).want(t, OK, "possible", "")
}
