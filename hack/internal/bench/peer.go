package bench

import (
	"context"
	"strings"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/run"
)

// upstream is the contestant whose code is upstream's.
const upstream = "kubernetes"

// peer is a contestant of test/bench that is not ours, and the module it comes from.
type peer struct{ contestant, module string }

// versions says which peers were measured.
func versions(ctx context.Context, l layout.Layout, peers []peer) (string, error) {
	var list []string
	for _, peer := range peers {
		module, err := run.Command(ctx, "go", "list", "-m", "-f={{.Path}} {{.Version}}", peer.module).Dir(l.Root).Output()
		if err != nil {
			return "", err
		}
		list = append(list, peer.contestant+" is "+module)
	}
	return strings.Join(list, ", ") + ".", nil
}
