package source

import (
	"context"

	"podenv.dev/hack/internal/codegen"
	"podenv.dev/hack/internal/progress"
)

// generator makes the generated code of a tree. Tests put a small one in the place of
// Kubernetes' own.
type generator struct {
	generate    func(context.Context, codegen.Options, *progress.Step) error
	inputsKey   func(context.Context, codegen.Options) (string, error)
	isGenerated func(path string) bool
}

// kubernetesGenerators are those of the tree itself.
var kubernetesGenerators = generator{
	generate:    codegen.Generate,
	inputsKey:   codegen.InputsKey,
	isGenerated: codegen.IsGenerated,
}
