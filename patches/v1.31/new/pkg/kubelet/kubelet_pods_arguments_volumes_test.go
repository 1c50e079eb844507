package kubelet

import "context"

// runVolumes runs the volume manager until ctx ends.
func runVolumes(ctx context.Context, kl *Kubelet) {
	kl.volumeManager.Run(kl.sourcesReady, ctx.Done())
}
