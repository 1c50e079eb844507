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

package anyrelease

import (
	"context"
	"errors"
	"reflect"
	"testing"
)

type key struct{}

type testContext struct {
	context.Context
}

func TestCall(t *testing.T) {
	ctx := context.WithValue(context.Background(), key{}, "ctx")
	failed := errors.New("failed")
	for name, tc := range map[string]struct {
		f    any
		args []any
		want []any
	}{
		"in the order of its parameters": {
			f:    func(n int, s, t string) string { return s + t },
			args: []any{"a", 1, "b"},
			want: []any{"ab"},
		},
		"zero values for what the release has besides": {
			f:    func(s, t string, p *int, e []string) []any { return []any{s, t, p == nil, e == nil} },
			args: []any{"a"},
			want: []any{[]any{"a", "", true, true}},
		},
		"an argument of another release": {
			f:    func(n int) int { return n },
			args: []any{ctx, nil, 1, "b"},
			want: []any{1},
		},
		"an interface, and an error": {
			f:    func(ctx context.Context, fail error) (any, error) { return ctx.Value(key{}), fail },
			args: []any{failed, ctx},
			want: []any{"ctx", failed},
		},
		"a struct around a context": {
			f:    func(tCtx testContext) any { return tCtx.Value(key{}) },
			args: []any{ctx},
			want: []any{"ctx"},
		},
		"no optional arguments": {
			f:    func(n int, options ...string) int { return n + len(options) },
			args: []any{1, "a"},
			want: []any{1},
		},
		"no results": {f: func() {}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Call(tc.f, tc.args...); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("want %v, got %v", tc.want, got)
			}
		})
	}
}
