package expansion

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// MaxString is the longest string that Linux gives a process in its environment,
// NAME=VALUE, or in its arguments: 32 pages with the NUL behind it, that is 128 KiB
// where a page has 4 KiB (execve(2), MAX_ARG_STRLEN).
var MaxString = 32*os.Getpagesize() - 1

// MaxStrings is the most that Linux gives a process of all of these together: three
// quarters of the 8 MiB that a stack has by default (execve(2), "Limits").
const MaxStrings = 6 << 20

// maxMade bounds the work for definitions that others replace, which no process is given.
const maxMade = 16 * MaxStrings

var (
	errString  = fmt.Errorf("the result is longer than a process can be given (%d bytes, with the name of a variable)", MaxString)
	errStrings = fmt.Errorf("it and what was expanded before are more than a process can be given (%d bytes)", MaxStrings)
)

// Budget bounds what the references of one container make of its env, or of its
// command and args. A few lines can refer to each other so that the last is larger
// than the node's memory, and no process could be started with it. What has no
// reference is left to the container runtime. The zero value is a whole budget.
type Budget struct {
	spent   int            // bytes of what was expanded, but for definitions that others replaced
	made    int            // with these
	sizes   map[string]int // of the variables in spent
	tooLong []tooLongVariable
}

type tooLongVariable struct {
	name string
	err  error
}

// tooLong is the value of a variable that is too long: what refers to it is so, too.
var tooLong = strings.Repeat("?", MaxString+1)

// Release takes what ExpandEnv has made of the variable called name off the budget: the
// caller defines the variable otherwise.
func (b *Budget) Release(name string) {
	b.spent -= b.sizes[name]
	delete(b.sizes, name)
}

// ExpandEnv expands the value of the variable called name, which may have been defined
// before. A value that alone is too long is left to CheckEnv, as the name may be defined
// again. Errors have the name.
func (b *Budget) ExpandEnv(name, value string, mapping func(string) string) (string, error) {
	b.Release(name)
	before := b.spent
	expanded, err := b.expand(len(name)+len("="), value, mapping)
	if b.spent > before {
		if b.sizes == nil {
			b.sizes = map[string]int{}
		}
		b.sizes[name] = b.spent - before
	}
	if err == nil {
		return expanded, nil
	}
	err = fmt.Errorf("cannot expand variable %q: %w", shortened(name), err)
	if errors.Is(err, errStrings) {
		return "", err
	}
	b.tooLong = append(b.tooLong, tooLongVariable{name, err})
	return tooLong, nil
}

// CheckEnv returns an error for the first variable that ExpandEnv found too long, and that
// has no other value in env, by name, in the end.
func (b *Budget) CheckEnv(env map[string]string) error {
	for _, variable := range b.tooLong {
		if env[variable.name] == tooLong {
			return variable.err
		}
	}
	return nil
}

// ExpandAll expands each of inputs, the container's command or args, as where says.
// With an error it returns those up to the one at fault, which no process can be
// given either.
func (b *Budget) ExpandAll(where string, inputs []string, mapping func(string) string) (all []string, err error) {
	for i, input := range inputs {
		expanded, err := b.ExpandOne(where, i, input, mapping)
		all = append(all, expanded)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// ExpandOne expands number i of the container's command or args.
func (b *Budget) ExpandOne(where string, i int, input string, mapping func(string) string) (string, error) {
	expanded, err := b.expand(0, input, mapping)
	if err != nil {
		return expanded, fmt.Errorf("cannot expand %s[%d]: %w", where, i, err)
	}
	return expanded, nil
}

// expand expands input, which a process is given behind so many other bytes.
func (b *Budget) expand(before int, input string, mapping func(string) string) (string, error) {
	expanded := Expand(input, mapping)
	if expanded == input {
		return input, nil
	}
	size := before + len(expanded) + len("\x00")
	b.spent, b.made = b.spent+size, b.made+size
	switch {
	case b.spent > MaxStrings || b.made > maxMade:
		return expanded, errStrings
	case before+len(expanded) > MaxString:
		return expanded, errString
	}
	return expanded, nil
}
