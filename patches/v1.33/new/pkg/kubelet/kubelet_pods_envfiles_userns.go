package kubelet

// envFileIDsPerPod returns how many IDs a pod's user namespace has.
func (kl *Kubelet) envFileIDsPerPod() int64 { return int64(kl.GetUserNamespacesIDsPerPod()) }
