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

import "unicode/utf8"

// MaxShownBytes is how much a message shows of a path, or of a name without a
// limit of its own.
const MaxShownBytes = 256

// Short returns text for a message: at most MaxShownBytes of its start,
// with "..." in place of the rest. It does not cut a UTF-8 sequence.
func Short(text string) string {
	if len(text) <= MaxShownBytes {
		return text
	}
	const rest = "..."
	end := MaxShownBytes - len(rest)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + rest
}
