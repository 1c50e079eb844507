package doctor

import (
	"context"
	"fmt"
	"go/version"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/run"
)

type tool struct {
	name    string
	pkg     string // its Debian package
	minimum string // semver, or empty if any version will do
	auto    bool   // podenv installs the package if it is missing
}

// required are the tools besides Go. Debian 11 has git 2.30: older ones lack options of `git am`
// and `git worktree` that package source relies on.
var required = []tool{
	{name: "git", pkg: "git", minimum: "v2.30.0"},
	{name: "make", pkg: "make"},
	{name: "protoc", pkg: "protobuf-compiler", minimum: "v3.12.0", auto: true},
	{name: "mmdebstrap", pkg: "mmdebstrap", auto: true},
}

func tools(ctx context.Context, l layout.Layout) []Finding {
	findings := []Finding{golang(ctx, l)}
	mayInstall := debian.ThisUser().CanInstall(ctx) == nil
	for _, t := range required {
		findings = append(findings, t.examine(ctx, mayInstall))
	}
	return append(findings, runcTools(ctx, mayInstall))
}

// runcTools checks for what compiles runc. mayInstall says whether podenv can install packages.
func runcTools(ctx context.Context, mayInstall bool) Finding {
	const check = "C compiler and libseccomp"
	compiler, noCompiler := run.Command(ctx, "gcc", "-dumpfullversion").Output()
	seccomp, noSeccomp := run.Command(ctx, "pkg-config", "--modversion", "libseccomp").Output()
	if noCompiler == nil && noSeccomp == nil {
		return ok(check, "gcc %s, libseccomp %s", compiler, seccomp)
	}
	const found, remedy = "not installed: runc needs them", "as root: `apt-get install gcc libc6-dev libseccomp-dev pkg-config`"
	if mayInstall {
		return warn(check, found, "`podenv up` installs them, or "+remedy)
	}
	return fail(check, found, remedy)
}

var versionNumber = regexp.MustCompile(`\d+\.\d+(\.\d+)?`)

// examine checks for the tool. mayInstall says whether podenv can install packages.
func (t tool) examine(ctx context.Context, mayInstall bool) Finding {
	remedy := "as root: `apt-get install " + t.pkg + "`"
	if _, err := exec.LookPath(t.name); err != nil {
		if t.auto && mayInstall {
			return warn(t.name, "not installed", "`podenv up` installs it, or "+remedy)
		}
		return fail(t.name, "not installed", remedy)
	}
	out, err := run.Command(ctx, t.name, "--version").Output()
	if err != nil {
		return fail(t.name, err.Error(), "fix it, or "+remedy)
	}
	line, _, _ := strings.Cut(out, "\n")
	found := versionNumber.FindString(line)
	if t.minimum != "" && semver.Compare("v"+found, t.minimum) < 0 {
		return fail(t.name, fmt.Sprintf("%s, older than %s", line, t.minimum[1:]), "install a newer one; "+remedy+" on Debian 12")
	}
	return ok(t.name, "%s", line)
}

func golang(ctx context.Context, l layout.Layout) Finding {
	const check = "go"
	path := filepath.Join(l.Root, "go.mod")
	data, err := os.ReadFile(path)
	if err != nil {
		return fail(check, err.Error(), "run podenv from its checkout")
	}
	mod, err := modfile.ParseLax(path, data, nil)
	if err != nil || mod.Go == nil {
		return fail(check, fmt.Sprintf("%s names no version of Go: %v", path, err), "restore it: `git checkout go.mod`")
	}
	remedy := fmt.Sprintf("install Go %s or newer from https://go.dev/dl/ and put it first in PATH", mod.Go.Version)
	// Outside of any module and with the local toolchain: a go command that is too old would
	// download a newer one.
	out, err := run.Command(ctx, "go", "env", "GOVERSION").Dir("/").Env("GOTOOLCHAIN=local").Output()
	if err != nil {
		return fail(check, err.Error(), remedy)
	}
	found, _, _ := strings.Cut(out, " ")
	if version.Compare(found, "go"+mod.Go.Version) < 0 {
		return fail(check, fmt.Sprintf("%s, older than go.mod's %s", found, mod.Go.Version), remedy)
	}
	return ok(check, "%s", found)
}

func packages(ctx context.Context) Finding {
	const check = "package installation"
	if err := debian.ThisUser().CanInstall(ctx); err != nil {
		return warn(check, err.Error(), "install by hand what the other lines name, or run podenv as root")
	}
	return ok(check, "possible with apt-get")
}
