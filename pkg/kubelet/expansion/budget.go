package expansion

import (
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

// maxKept bounds the memory for definitions that others may replace. Beyond it, what refers
// to another variable counts as too long.
const maxKept = 4 * MaxStrings

var (
	errString  = fmt.Errorf("the result is longer than a process can be given (%d bytes, with the name of a variable)", MaxString)
	errStrings = fmt.Errorf("it and what was expanded before are more than a process can be given (%d bytes)", MaxStrings)
	errEnv     = fmt.Errorf("cannot expand the variables: with what they refer to they are more than a process can be given (%d bytes)", MaxStrings)
)

// Budget bounds what the references of one container make of its env, or of its
// command and args. A few lines can refer to each other so that the last is larger
// than the node's memory, and no process could be started with it. What has no
// reference is left to the container runtime. The zero value is a whole budget.
type Budget struct {
	spent   int            // bytes of what was expanded, but for definitions that others replaced
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
// before. It leaves to CheckEnv what is too long, as the name may be defined again.
func (b *Budget) ExpandEnv(name, value string, mapping func(string) string) string {
	b.Release(name)
	before := b.spent
	expanded, err := b.expandEnv(len(name)+len("="), value, mapping)
	if b.spent > before {
		if b.sizes == nil {
			b.sizes = map[string]int{}
		}
		b.sizes[name] = b.spent - before
	}
	if err != nil {
		b.tooLong = append(b.tooLong, tooLongVariable{name, err})
		return tooLong
	}
	return expanded
}

func (b *Budget) expandEnv(before int, value string, mapping func(string) string) (string, error) {
	if b.spent <= maxKept {
		expanded, err := b.expand(before, value, mapping)
		if err == errStrings {
			err = nil // others may replace what was expanded before
		}
		return expanded, err
	}
	refers := false
	expanded := Expand(value, func(name string) string {
		if unknown := reference(name); mapping(name) == unknown {
			return unknown
		}
		refers = true
		return ""
	})
	if refers {
		return "", errStrings
	}
	return expanded, nil
}

// CheckEnv returns an error if a process cannot be given what ExpandEnv has made, with env,
// by name, in the end. That of a variable has its name.
func (b *Budget) CheckEnv(env map[string]string) error {
	for _, variable := range b.tooLong {
		if env[variable.name] == tooLong {
			return fmt.Errorf("cannot expand variable %q: %w", shortened(variable.name), variable.err)
		}
	}
	return b.CheckSum()
}

// CheckSum is CheckEnv for all variables together.
func (b *Budget) CheckSum() error {
	if b.spent > MaxStrings {
		return errEnv
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
	if before+len(expanded) > MaxString {
		return expanded, errString
	}
	b.spent += before + len(expanded) + len("\x00")
	if b.spent > MaxStrings {
		return expanded, errStrings
	}
	return expanded, nil
}
