// Package anyrelease lets a test call functions that take other parameters in other releases.
package anyrelease

import (
	"context"
	"reflect"
)

// Call calls the function f and returns its results. Each parameter takes the first of
// args that is left and can be assigned to it, and its zero value where none can. An
// argument that no parameter takes is for other releases.
func Call(f any, args ...any) []any {
	function := reflect.ValueOf(f)
	left := append([]any(nil), args...)
	in := make([]reflect.Value, function.Type().NumIn())
	if function.Type().IsVariadic() {
		in = in[:len(in)-1]
	}
	for i := range in {
		in[i] = take(function.Type().In(i), &left)
	}
	var results []any
	for _, result := range function.Call(in) {
		results = append(results, result.Interface())
	}
	return results
}

func take(parameter reflect.Type, left *[]any) reflect.Value {
	for i, arg := range *left {
		if arg != nil && reflect.TypeOf(arg).AssignableTo(parameter) {
			*left = append((*left)[:i], (*left)[i+1:]...)
			return reflect.ValueOf(arg)
		}
	}
	value := reflect.New(parameter).Elem()
	// ktesting.TContext is a struct around a context in some releases.
	if parameter.Kind() == reflect.Struct {
		if field := value.FieldByName("Context"); field.CanSet() && field.Type() == reflect.TypeOf((*context.Context)(nil)).Elem() {
			field.Set(take(field.Type(), left))
		}
	}
	return value
}
