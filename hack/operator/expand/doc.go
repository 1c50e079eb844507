// Package expand is a dry run of what the kubelet does with a container's env,
// command and args: it says what a pod would start with, which references stay
// unexpanded, and why. Expansion itself is that of pkg/kubelet/expansion.
package expand
