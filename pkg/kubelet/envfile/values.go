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

import "strings"

// Values are the variables that a file defines, of those that were asked for.
type Values struct {
	index  map[string]int
	values []string
	// defined tells an empty value from none.
	defined []bool
}

// Lookup returns the value of key. If the file does not define it, or Parse was
// not asked for it, the error is ErrKeyNotFound.
func (v *Values) Lookup(key string) (string, error) {
	if i, ok := v.index[key]; ok && v.defined[i] {
		return v.values[i], nil
	}
	return "", ErrKeyNotFound
}

// selection keeps the last definition of each key asked for, in the file's
// memory, until the file is known to be right to its end.
type selection struct {
	index   map[string]int
	found   []value
	defined []bool
}

func newSelection(keys []string) *selection {
	s := &selection{index: make(map[string]int, len(keys))}
	for _, key := range keys {
		if _, ok := s.index[key]; !ok {
			s.index[key] = len(s.index)
		}
	}
	s.found = make([]value, len(s.index))
	s.defined = make([]bool, len(s.index))
	return s
}

func (s *selection) set(name []byte, val value) {
	if i, ok := s.index[string(name)]; ok {
		s.found[i], s.defined[i] = val, true
	}
}

// values copies the values out of the file's memory, all into one string.
func (s *selection) values() *Values {
	size := 0
	for _, val := range s.found {
		size += val.size()
	}
	var text strings.Builder
	text.Grow(size)
	values := make([]string, len(s.found))
	for i, val := range s.found {
		start := text.Len()
		val.each(func(piece []byte) { text.Write(piece) })
		values[i] = text.String()[start:]
	}
	return &Values{index: s.index, values: values, defined: s.defined}
}

// value is where a value stands in the file's memory.
type value struct {
	raw []byte
	// joined says that raw is several lines, all but the last with a backslash
	// at the end.
	joined bool
}

// size is the length of the value in bytes.
func (v value) size() int {
	if !v.joined {
		return len(v.raw)
	}
	size := 0
	v.each(func(piece []byte) { size += len(piece) })
	return size
}

var oneSpace = []byte{' '}

// each yields the pieces that the value is made of.
func (v value) each(yield func(piece []byte)) {
	if !v.joined {
		yield(v.raw)
		return
	}
	first := true
	for l := (lines{data: v.raw}); l.next(); {
		piece := l.text()
		if l.following < len(v.raw) {
			piece = trimRight(piece[:len(piece)-1])
		}
		// Nothing but a backslash adds nothing: the white space around a join
		// includes the space that the join before it left.
		if len(piece) == 0 {
			continue
		}
		if !first {
			yield(oneSpace)
		}
		yield(piece)
		first = false
	}
}
