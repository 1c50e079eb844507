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

// Package expansion replaces references of the form $(NAME) in a container's
// environment, command and args, and reports those that it could not replace.
//
// It is what the document "Variable expansion" (design/expansion.md of
// Kubernetes 1.2) calls the expansion package, with the event that was never
// built. Results are those of k8s.io/kubernetes/third_party/forked/golang/expansion
// for every input.
package expansion
