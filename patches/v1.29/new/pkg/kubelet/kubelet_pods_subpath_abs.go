package kubelet

import "path/filepath"

// isAbsSubPath reports what makeMounts would: it refuses an absolute subPath, and shows it.
func isAbsSubPath(subPath string) bool { return filepath.IsAbs(subPath) }
