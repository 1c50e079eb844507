// Package digest computes the keys of content-addressed results: hexadecimal SHA-256.
package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"golang.org/x/sync/errgroup"
)

// Of hashes parts, each with its length, so that different lists have different hashes.
func Of(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// File hashes the content of a file.
func File(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Files hashes up to four files at once. The result is in the order of paths.
func Files(paths ...string) ([]string, error) {
	sums := make([]string, len(paths))
	var g errgroup.Group
	g.SetLimit(4)
	for i, path := range paths {
		g.Go(func() (err error) {
			sums[i], err = File(path)
			return err
		})
	}
	return sums, g.Wait()
}
