package codegen

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"podenv.dev/hack/internal/digest"
)

// outputVersion must be raised when Generate writes other files for the same inputs.
const outputVersion = "3"

// InputsKey is a hash of everything that Generate's output depends on: equal keys of the same
// release mean equal generated files. It reads only what changed since the release, and takes
// well under a second.
func InputsKey(ctx context.Context, o Options) (string, error) {
	c, err := findChange(ctx, o)
	if err != nil {
		return "", err
	}
	parts := []string{"codegen", outputVersion, o.Release, strconv.FormatBool(o.All)}
	sources, _ := openAPISpec.ReadDir("openapispec") // embedded: cannot fail
	for _, source := range sources {
		data, _ := openAPISpec.ReadFile("openapispec/" + source.Name())
		parts = append(parts, source.Name(), string(data))
	}
	for _, file := range c.paths() {
		if data, ok := c.after[file]; ok {
			parts = append(parts, "file", file, string(data))
		} else {
			parts = append(parts, "deleted", file)
		}
	}
	if c.changesClients() {
		groups, err := os.ReadFile(filepath.Join(c.repo.Dir, groupList))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		parts = append(parts, "groups", string(groups))
	}
	return digest.Of(parts...), nil
}
