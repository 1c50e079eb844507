package kubelet

// envFileIDsPerPod returns how many IDs a pod's user namespace has. 0 is the number that
// kubelets before v1.33, which have no setting for it, always take.
func (kl *Kubelet) envFileIDsPerPod() int64 { return 0 }
