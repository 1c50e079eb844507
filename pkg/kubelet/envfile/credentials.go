package envfile

// Credentials are what is known of the process that the values are for (KEP-3721,
// row 7 of its failure table). IDs are the numbers that the volume's files carry.
type Credentials struct {
	// UID is the effective user. It is nil where it is not known because the
	// image names its user: then the file must be readable, and the directories
	// on the way to it searchable, by others.
	UID *int64
	// GID is the primary group. It is nil where it is not known: then access
	// must be allowed whatever the group is.
	GID *int64
	// Groups are the supplementary groups, the pod's fsGroup included.
	Groups []int64
	// UserNamespace says that the process is in a user namespace of its own, in
	// which UID 0 has its power only over files whose owner and group are both
	// mapped there: 0 to IDsPerPod-1.
	UserNamespace bool
	// IDsPerPod is the length of that user namespace, userNamespaces.idsPerPod in
	// the kubelet's configuration. 0 is its default, 65536.
	IDsPerPod int64
}

const defaultIDsPerPod = 1 << 16
