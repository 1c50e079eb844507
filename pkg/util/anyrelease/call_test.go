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
