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

package kubelet

import "context"

type podWorkerContextKey struct{}

// withPodWorkerContext returns ctx with the context of the pod worker as a value.
// The container runtime is called without the worker's cancellation, see SyncPod.
// The reading of env files is not to go on without need when the pod is deleted.
func withPodWorkerContext(ctx, worker context.Context) context.Context {
	return context.WithValue(ctx, podWorkerContextKey{}, worker)
}

// podWorkerContext returns the context of the pod worker, which ends when the pod
// is deleted, or ctx itself if it has none.
func podWorkerContext(ctx context.Context) context.Context {
	if worker, ok := ctx.Value(podWorkerContextKey{}).(context.Context); ok {
		return worker
	}
	return ctx
}
