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

package container

import "context"

// ImageUserGetter is implemented by the runtimes that know as whom an image
// makes its containers run.
type ImageUserGetter interface {
	// GetImageUID returns the user of a container of the image that sets no
	// runAsUser: 0 if the image does not say, nil if it says a name, which only
	// the image's own files could resolve. The image must be on the node.
	GetImageUID(ctx context.Context, image string) (*int64, error)
}
