package kubelet

import (
	goerrors "errors"
	"fmt"
	"path/filepath"
	"syscall"

	v1 "k8s.io/api/core/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	volumevalidation "k8s.io/kubernetes/pkg/volume/validation"
)

// expandSubPathExpr returns the subPath of a mount that has a subPathExpr. What
// is wrong with it makeMounts would find too, but show it, and a variable may
// hold a secret: the error has the expression, not what it expands to.
func expandSubPathExpr(mount v1.VolumeMount, env []kubecontainer.EnvVar) (string, error) {
	subPath, err := kubecontainer.ExpandContainerVolumeMounts(mount, env)
	if err != nil {
		return "", err
	}
	if isAbsSubPath(subPath) {
		return "", fmt.Errorf("subPathExpr `%s` must not expand to an absolute path", mount.SubPathExpr)
	}
	if err := volumevalidation.ValidatePathNoBacksteps(subPath); err != nil {
		return "", fmt.Errorf("unable to provision subPathExpr `%s`: what it expands to %w", mount.SubPathExpr, err)
	}
	return subPath, nil
}

// subPathError returns an error of the subPath of a mount for the log. That of a
// subPathExpr is only its errno: the others have the path, or parts of it.
func subPathError(err error, mount v1.VolumeMount) error {
	if mount.SubPathExpr == "" {
		return err
	}
	var errno syscall.Errno
	if !goerrors.As(err, &errno) {
		return fmt.Errorf("subPathExpr `%s` cannot be used with the values of its variables", mount.SubPathExpr)
	}
	return fmt.Errorf("subPathExpr `%s`: %w", mount.SubPathExpr, errno)
}

// shownHostPath returns the path of a mount on the node for the log, with a
// subPathExpr as the pod has it.
func shownHostPath(volumePath, hostPath string, mount v1.VolumeMount) string {
	if mount.SubPathExpr == "" {
		return hostPath
	}
	return filepath.Join(volumePath, mount.SubPathExpr)
}
