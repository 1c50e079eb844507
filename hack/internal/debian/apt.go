package debian

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"podenv.dev/hack/internal/run"
)

// aptSources is a sources list with the mirrors of the suite that this machine's apt
// is set up with. scratch is a folder for package lists, should the machine have none.
func aptSources(ctx context.Context, scratch string) (string, error) {
	sources, err := listSources(ctx)
	if err != nil || sources != "" {
		return sources, err
	}
	lists := []string{"-o", "Dir::State::lists=" + scratch}
	if err := run.Command(ctx, "apt-get", append(lists, "update")...).Run(); err != nil {
		return "", fmt.Errorf("reading the lists of Debian's packages: %w", err)
	}
	sources, err = listSources(ctx, lists...)
	if err == nil && sources == "" {
		err = fmt.Errorf("this machine's apt has no mirror of Debian %s: add one to /etc/apt/sources.list.d", suite)
	}
	return sources, err
}

// listSources asks apt, which knows only the mirrors that it has read the lists of.
func listSources(ctx context.Context, options ...string) (string, error) {
	args := append(options[:len(options):len(options)], "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages")
	out, err := run.Command(ctx, "apt-get", args...).Output()
	if err != nil {
		return "", fmt.Errorf("reading which mirrors apt uses: %w", err)
	}
	return suiteSources(out), nil
}

// suiteSources picks the suite's main component from lines of URI, release and component.
func suiteSources(targets string) string {
	var lines []string
	for target := range strings.Lines(targets) {
		f := strings.Fields(target)
		if len(f) != 3 || f[1] != suite || f[2] != "main" {
			continue
		}
		line := fmt.Sprintf("deb %s %s main\n", f[0], suite)
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// aptProxies are the proxy settings of this machine's apt, as apt.conf(5) has them:
// mmdebstrap reads none of it.
func aptProxies(ctx context.Context) ([]string, error) {
	out, err := run.Command(ctx, "apt-config", "dump", "--no-empty", "--format", `%f "%v";%n`, "Acquire::http::Proxy", "Acquire::https::Proxy").Output()
	if err != nil {
		return nil, fmt.Errorf("reading apt's proxy: %w", err)
	}
	return strings.FieldsFunc(out, func(r rune) bool { return r == '\n' }), nil
}
