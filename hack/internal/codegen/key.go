package codegen

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	h := sha256.New()
	fmt.Fprintf(h, "codegen %s %s %t\n", outputVersion, o.Release, o.All)
	sources, _ := openAPISpec.ReadDir("openapispec") // embedded: cannot fail
	for _, source := range sources {
		data, _ := openAPISpec.ReadFile("openapispec/" + source.Name())
		fmt.Fprintf(h, "%s %x\n", source.Name(), sha256.Sum256(data))
	}
	for _, file := range c.paths() {
		if data, ok := c.after[file]; ok {
			fmt.Fprintf(h, "%s %x\n", file, sha256.Sum256(data))
		} else {
			fmt.Fprintf(h, "%s gone\n", file)
		}
	}
	if c.changesClients() {
		groups, err := os.ReadFile(filepath.Join(c.repo.Dir, groupList))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		fmt.Fprintf(h, "groups %x\n", sha256.Sum256(groups))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
