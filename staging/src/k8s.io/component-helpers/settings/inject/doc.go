/*
Copyright 2026 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Package inject adds what PodPresets hold to a pod, as the design document "Pod
// Preset" describes: presets are applied from oldest to newest, each as a whole or not
// at all.
//
// The admission plugin of the API server uses it, and so can tools that show what the
// plugin would do. That is why it works on the types of k8s.io/api/core/v1 and has a
// type of its own for a preset: it needs no API server and no client.
package inject
