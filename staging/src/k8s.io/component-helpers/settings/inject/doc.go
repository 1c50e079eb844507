// Package inject adds what PodPresets hold to a pod, as the design document "Pod
// Preset" describes: presets are applied from oldest to newest, each as a whole or not
// at all.
//
// The admission plugin of the API server uses it, and so can tools that show what the
// plugin would do. That is why it works on the types of k8s.io/api/core/v1 and has a
// type of its own for a preset: it needs no API server and no client.
package inject
