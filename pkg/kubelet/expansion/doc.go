// Package expansion replaces references of the form $(NAME) in a container's
// environment, command and args, and reports those that it could not replace.
//
// It is what the document "Variable expansion" (design/expansion.md of
// Kubernetes 1.2) calls the expansion package, with the event that was never
// built. Results are those of k8s.io/kubernetes/third_party/forked/golang/expansion
// for every input, as far as a process can be given them.
package expansion
