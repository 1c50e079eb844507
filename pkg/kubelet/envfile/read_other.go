//go:build !linux

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

package envfile

import "context"

// Read fails: only Linux can keep a read inside a volume that a workload
// writes to.
func Read(ctx context.Context, root, path string, keys []string, opts Options) (*Values, error) {
	return nil, ErrReadFailed.atLine(0, "env files can be read on Linux nodes only")
}
