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
