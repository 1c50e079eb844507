package kubelet

import utilfs "k8s.io/kubernetes/pkg/util/filesystem"

// isAbsSubPath reports what makeMounts would: it refuses an absolute subPath, and shows it.
func isAbsSubPath(subPath string) bool { return utilfs.IsAbs(subPath) }
