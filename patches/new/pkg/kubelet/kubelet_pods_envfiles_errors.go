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

import (
	goerrors "errors"

	"k8s.io/kubernetes/pkg/kubelet/envfile"
)

// invalidVolumeError says why a volume cannot hold an env file. The API server
// refuses such a pod, and so does the kubelet if it is a static pod: this is
// for what slips past them.
type invalidVolumeError string

func (e invalidVolumeError) Error() string { return string(e) }

// envFileErrorReason returns the label of an error in a metric. The set is
// closed: nothing that a workload chose may get in there.
func envFileErrorReason(err error) string {
	var envFileError *envfile.Error
	var invalidVolume invalidVolumeError
	switch {
	case goerrors.As(err, &envFileError):
		return string(envFileError.Reason)
	case goerrors.As(err, &invalidVolume):
		return "invalid_volume"
	default:
		return string(envfile.ReasonReadFailed)
	}
}
