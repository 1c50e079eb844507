package nodeimage

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"
)

// shortHash is how many digits of a hash name a result: enough that two never meet.
const shortHash = 12

// digest hashes parts, each with its length, so that no two lists hash alike by accident.
func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s\n", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))[:shortHash]
}

// digestFiles hashes the content of files, in the order of their names, on all cores.
func digestFiles(names []string) (string, error) {
	names = slices.Sorted(slices.Values(names))
	sums := make([]string, len(names))
	var g errgroup.Group
	g.SetLimit(4)
	for i, name := range names {
		g.Go(func() error {
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			h := sha256.New()
			if _, err := io.Copy(h, f); err != nil {
				return fmt.Errorf("reading %s: %w", name, err)
			}
			sums[i] = string(h.Sum(nil))
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return "", err
	}
	return digest(sums...), nil
}
