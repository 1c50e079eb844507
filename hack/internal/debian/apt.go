package debian

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"podenv.dev/hack/internal/run"
)

// aptSources returns a sources list with the mirrors of the suite that this machine's apt
// uses. If the machine has no package lists, they are downloaded to the directory scratch.
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

// listSources asks apt for its mirrors. apt knows only those whose lists it has downloaded.
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

// aptProxies returns the proxy settings of this machine's apt, in the syntax of apt.conf(5).
// mmdebstrap does not read them.
func aptProxies(ctx context.Context) ([]string, error) {
	out, err := run.Command(ctx, "apt-config", "dump", "--no-empty", "--format", `%f "%v";%n`, "Acquire::http::Proxy", "Acquire::https::Proxy").Output()
	if err != nil {
		return nil, fmt.Errorf("reading apt's proxy: %w", err)
	}
	return strings.FieldsFunc(out, func(r rune) bool { return r == '\n' }), nil
}
