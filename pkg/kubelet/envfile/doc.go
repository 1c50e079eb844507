// Package envfile reads the env files of KEP-3721: files that a workload wrote
// to an emptyDir volume and from which the kubelet sets a container's variables.
//
// The file is hostile input to a process that runs as root. So it is opened
// without ever leaving the volume, only if it is a regular file, without
// blocking, and what is read is one state of the file, never a mix of two. No
// error carries a byte of the file or a path of the node.
//
// The kubelet's root may read what the container's user may not. Options.Reader
// makes the read fail where the kernel would have refused it to that user.
//
// Options.Syntax says which form the file has: that of RFC 2, .env file
// (https://smartmob-rfc.readthedocs.io/en/latest/2-dotenv.html), or the single quotes
// that Kubernetes reads from v1.35 on. See Parse.
package envfile
